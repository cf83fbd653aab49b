package run

import (
	"context"
	"fmt"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
)

// User is the model that answers the agent's questions.
type User struct {
	Model     string `yaml:"model" flag:"user-model" experiment:"given" help:"model that answers the agent's questions where a task has {\"user\": {\"model\": true}}"`
	BaseURL   string `yaml:"base_url" flag:"user-base-url" experiment:"no" help:"endpoint of the user model (default: base_url)"`
	APIKeyEnv string `yaml:"api_key_env" flag:"user-api-key-env" experiment:"no" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
}

// openUser opens the model that plays the users of tasks that ask for one.
func (m *models) openUser(ctx context.Context) error {
	f := m.File
	if f.User.Model == "" {
		return nil
	}
	client, err := sideModel{record.User, f.User.Model, f.User.BaseURL, f.User.APIKeyEnv}.open(m, model.Config{
		Patience: model.Patience{Timeout: f.Requests.Timeout, Retries: f.Requests.Retries},
	})
	m.user = client
	return err
}

// Validate says what is wrong with the section.
func (u User) Validate() error {
	if u.Model == "" && (u.BaseURL != "" || u.APIKeyEnv != "") {
		return fmt.Errorf("base_url and api_key_env of user say where the user model is: give --user-model NAME too")
	}
	return nil
}
