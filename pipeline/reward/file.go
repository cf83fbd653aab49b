package reward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Verdicts is the directory in which a command with the reward "file" leaves its verdict: reward.json, or reward.txt with one
// number.
const Verdicts = "/logs/verifier"

const (
	mostVerdict = 64 << 10 // bytes of a file with a verdict
	mostNumbers = 100      // in one verdict
	readTime    = time.Minute
)

// verifyRewardFile runs a command that leaves the reward in a file, as the verifiers of Harbor tasks do. Earlier files are removed
// before it begins, and processes that it left are killed before the file is read. Its exit status does not count, unless a signal
// killed it. A missing or unreadable verdict, or two different ones, are not a reward of 0: the verifier is Broken.
func verifyRewardFile(ctx context.Context, check episode.Check, subject Subject) (judgement, error) {
	ran, err := execute(ctx, check, subject, emptyVerdicts)
	if err != nil || ran.failed {
		return judgement{detail: ran.detail}, err
	}
	reading, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := ran.sb.KillAll(reading); err != nil {
		return judgement{}, late(reading, readTime, fmt.Errorf("end what the verifier left running: %w", err))
	}
	judged, err := readVerdict(reading, ran.sb.Files())
	if signal := ran.exit.Signal; err == nil && signal != 0 {
		err = &Broken{Class: fmt.Sprintf("signal_%d", signal), Message: fmt.Sprintf("verifier was ended by signal %d", signal)}
	}
	var broken *Broken
	switch {
	case errors.As(err, &broken) && ran.blame != "":
		return ran.failure(broken), nil
	case errors.As(err, &broken):
		broken.Message = fmt.Sprintf("%s; the verifier ended with status %d: %s", broken.Message, ran.exit.Code, ran.detail)
		return judgement{}, broken
	case err != nil:
		return judgement{}, late(reading, readTime, err)
	}
	judged.detail = fmt.Sprintf("%s (status %d): %s", judged.detail, ran.exit.Code, ran.detail)
	return judged, nil
}

// emptyVerdicts creates the directory anew. No part of its path may be a link or a file of the agent.
func emptyVerdicts(ctx context.Context, sb sandbox.Sandbox) error {
	files, above := sb.Files(), path.Dir(Verdicts)
	info, err := files.Stat(ctx, above)
	switch {
	case errors.Is(err, sandbox.ErrGone):
		return err
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || info.Path != above || !info.Mode.IsDir():
		if err := files.Remove(ctx, above); err != nil {
			return fmt.Errorf("remove what lies at %s: %w", above, err)
		}
	}
	if err := files.Remove(ctx, Verdicts); err != nil {
		return fmt.Errorf("empty %s: %w", Verdicts, err)
	}
	// Writing a file creates the directory, and shows that the agent left nothing that keeps a verdict from being written.
	begun := path.Join(Verdicts, ".begun")
	if err := files.Write(ctx, sandbox.FileWrite{Path: begun, Data: make([]byte, mostVerdict)}); err != nil {
		return fmt.Errorf("make %s: %w", Verdicts, err)
	}
	return files.Remove(ctx, begun)
}

// readVerdict reads reward.json, which may have further numbers, and reward.txt. If both exist they must agree.
func readVerdict(ctx context.Context, files sandbox.Files) (judgement, error) {
	text, isText, err := verdictFile(ctx, files, "reward.txt", parseText)
	if err != nil {
		return judgement{}, err
	}
	object, isObject, err := verdictFile(ctx, files, "reward.json", parseVerdict)
	switch {
	case err != nil:
		return judgement{}, err
	case isObject && isText && object.value != text.value:
		return judgement{}, &Broken{Class: "output", Message: fmt.Sprintf("%s says %v in reward.json and %v in reward.txt", Verdicts, object.value, text.value)}
	case isObject:
		return object, nil
	case isText:
		return text, nil
	}
	return judgement{}, &Broken{Class: "output", Message: "the verifier left no reward: want a number in " + Verdicts + "/reward.txt, or reward.json"}
}

func verdictFile(ctx context.Context, files sandbox.Files, name string, parse func([]byte) (judgement, error)) (_ judgement, found bool, err error) {
	full := path.Join(Verdicts, name)
	data, _, err := files.Read(ctx, full, 0, mostVerdict+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return judgement{}, false, nil
	case errors.Is(err, sandbox.ErrGone) || ctx.Err() != nil:
		return judgement{}, false, err
	case err != nil:
		return judgement{}, false, &Broken{Class: "output", Message: err.Error()}
	}
	var judged judgement
	if len(data) > mostVerdict {
		err = fmt.Errorf("more than %d KiB, want a number", mostVerdict>>10)
	} else {
		judged, err = parse(data)
	}
	if err != nil {
		return judgement{}, false, &Broken{Class: "output", Message: fmt.Sprintf("%s: %v", full, err)}
	}
	judged.detail = name
	return judged, true, nil
}

func parseText(data []byte) (judgement, error) {
	text := strings.TrimSpace(string(data))
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !finite(value) {
		return judgement{}, fmt.Errorf("%q, want one finite number", clip(text))
	}
	return judgement{value: value}, nil
}

// parseVerdict reads a number, or an object of numbers whose entry reward is the verdict.
func parseVerdict(data []byte) (judgement, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var value json.RawMessage
	if err := decoder.Decode(&value); err != nil {
		return judgement{}, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return judgement{}, errors.New("more follows its JSON value, want a number or an object of numbers")
	}
	var number *float64
	if err := json.Unmarshal(value, &number); err == nil && number != nil {
		return judgement{value: *number}, nil
	}
	var numbers map[string]*float64
	if err := json.Unmarshal(value, &numbers); err != nil {
		return judgement{}, fmt.Errorf("%q, want a number or an object of numbers", clip(string(value)))
	}
	reward := numbers["reward"]
	switch {
	case reward == nil:
		return judgement{}, errors.New("it has no number reward, which is the verdict")
	case len(numbers) > mostNumbers:
		return judgement{}, fmt.Errorf("%d numbers, over the limit of %d", len(numbers), mostNumbers)
	}
	delete(numbers, "reward")
	judged := judgement{value: *reward, further: map[string]float64{}}
	for name, number := range numbers {
		if number == nil {
			return judgement{}, fmt.Errorf("%q is null, want a number", clip(name))
		}
		judged.further[name] = *number
	}
	return judged, nil
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
