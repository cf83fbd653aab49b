package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"trajgen/pipeline/model"
)

// openUser opens the model that plays the users of tasks that ask for one.
func (e *experiment) openUser(ctx context.Context) error {
	f := e.file
	if f.UserModel == "" {
		return nil
	}
	cfg := model.Config{
		Name: f.UserModel, BaseURL: cmp.Or(f.UserBaseURL, f.baseURL()), Timeout: f.RequestTimeout, MaxRetries: f.RequestRetries,
		Proxy: http.ProxyFromEnvironment, Concurrency: f.Workers, Logger: e.logger,
	}
	// The agent's key goes to the agent's endpoint alone.
	name := f.UserAPIKeyEnv
	if name == "" && f.UserBaseURL == "" {
		name = f.APIKeyEnv
	}
	var err error
	if cfg.APIKey, err = e.apiKey(name, cfg.BaseURL); err != nil {
		return fmt.Errorf("user model: %w", err)
	}
	e.thread(&cfg, userRole)
	e.pay(&cfg)
	client, err := model.Open(cfg)
	if err != nil {
		return fmt.Errorf("user model: %w", err)
	}
	e.user = client
	e.closers = append(e.closers, func() error { client.Close(); return nil })
	if err := client.Probe(ctx); err != nil {
		return fmt.Errorf("user model: %w", err)
	}
	return nil
}

// checkUser says what is wrong with the keys of the user model.
func (f *runFile) checkUser() error {
	switch {
	case f.UserModel == "" && (f.UserBaseURL != "" || f.UserAPIKeyEnv != ""):
		return fmt.Errorf("user_base_url and user_api_key_env say where the user model is: give --user-model NAME too")
	case f.UserModel != "" && f.UserBaseURL == "" && f.Policy != "":
		return fmt.Errorf("user_model needs user_base_url when a policy plays: the embedded server knows the agent's part alone")
	}
	return nil
}
