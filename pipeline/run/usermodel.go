package run

import (
	"context"
	"fmt"

	"trajgen/pipeline/model"
)

// openUser opens the model that plays the users of tasks that ask for one.
func (e *Experiment) openUser(ctx context.Context) error {
	f := e.File
	if f.UserModel == "" {
		return nil
	}
	client, err := sideModel{userRole, f.UserModel, f.UserBaseURL, f.UserAPIKeyEnv}.open(e, model.Config{
		Timeout: f.RequestTimeout, MaxRetries: f.RequestRetries,
	})
	e.user = client
	return err
}

// checkUser says what is wrong with the keys of the user model.
func (f *File) checkUser() error {
	switch {
	case f.UserModel == "" && (f.UserBaseURL != "" || f.UserAPIKeyEnv != ""):
		return fmt.Errorf("user_base_url and user_api_key_env say where the user model is: give --user-model NAME too")
	case f.UserModel != "" && f.UserBaseURL == "" && f.Policy != "":
		return fmt.Errorf("user_model needs user_base_url when a policy plays: the embedded server knows the agent's part alone")
	}
	return nil
}
