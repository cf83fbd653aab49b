package source

import (
	"errors"

	"trajgen/pipeline/model"
)

// Keep asks, or takes from an attempt's record what was answered before. What the agent can mend and what passes is kept, too; an error that
// the operator must mend, and one that is not an *Error, is not.
func Keep(record model.Ask, role, question string, answer any, ask func() error) error {
	kept := struct {
		Answer any
		Failed *Error
	}{Answer: answer}
	err := record(role, question, &kept, func() error {
		err := ask()
		if failed, ok := errors.AsType[*Error](err); ok && failed.Blame != Operator {
			kept.Failed = failed
			return nil
		}
		return err
	})
	if err == nil && kept.Failed != nil {
		return kept.Failed
	}
	return err
}

// Once is Keep for what must not happen twice: the record says that it was begun before it is done. Where a runner died between the
// two, it is not done again, and unknown is kept as the answer.
func Once(record model.Ask, role, question string, answer any, unknown *Error, do func() error) error {
	begun := true // by a runner that died
	if err := record(role, "begin "+question, new(bool), func() error {
		begun = false
		return nil
	}); err != nil {
		return err
	}
	return Keep(record, role, "do "+question, answer, func() error {
		if begun {
			return unknown
		}
		return do()
	})
}
