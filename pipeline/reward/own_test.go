package reward_test

import (
	"context"
	"errors"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
)

// TestOtherImage has a verifier judge artifacts where nothing else of the agent is.
func TestOtherImage(t *testing.T) {
	t.Parallel()
	opened, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	const image = "example.org/judge:1"
	spec := sandbox.Spec{ID: "agent", Env: map[string]string{"SECRET": "1"}}
	sb, err := opened.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	act(t, sb, `mkdir -p out; echo 42 > out/x; echo other > y; head -c 8M /dev/zero > large; echo 7 > "$TMPDIR/z"`)
	own := grounds[0].own(t, opened, spec, "")
	var asked sandbox.Spec
	own.Open = func(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
		asked = spec
		spec.Image = "" // which has all that the commands need
		return opened.Open(ctx, spec)
	}
	tests := []struct {
		name      string
		artifacts []string
		disk      int64
		command   string
		want      float64
	}{
		{name: "artifacts", artifacts: []string{"out", "none", sb.Layout().Tmp + "/z"}, command: `grep -q 42 out/x && grep -q 7 "$TMPDIR/z" && test ! -e y && test ! -e none && test -z "$SECRET"`, want: 1},
		{name: "none", command: "test ! -e out", want: 1},
		{name: "too much", artifacts: []string{"large"}, disk: 2 << 20, command: "true", want: 0},
	}
	for _, tt := range tests {
		check := episode.Check{Command: tt.command, Verifier: &episode.Verifier{
			Image: image, Artifacts: tt.artifacts, Network: "none", Resources: episode.Resources{Disk: tt.disk},
		}}
		s := subject(t, sb, "")
		s.Apart, s.Own = true, own
		rewards, mean, err := reward.Verify(t.Context(), []episode.Check{check}, s)
		if err != nil || mean != tt.want {
			t.Errorf("%s: Verify = %v, %v, want %v", tt.name, rewards, err, tt.want)
		}
		if asked.Image != image || asked.From != nil || asked.Network != sandbox.NetworkNone {
			t.Errorf("%s: opened with %+v", tt.name, asked)
		}
	}
}

// TestCannotFork holds that a verifier which must have a sandbox of its own does not run in the agent's.
func TestCannotFork(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]episode.Verifier{"fork": {Sandbox: "fork"}, "network": {Network: "none"}} {
		s := subject(t, open(t), "")
		s.Own = &reward.Own{Spec: func() sandbox.Spec { return sandbox.Spec{ID: "x"} }}
		for _, check := range []episode.Check{{Command: "true", Verifier: &v}, {Python: "/tests/score.py", Verifier: &v}} {
			if _, _, err := reward.Verify(t.Context(), []episode.Check{check}, s); !errors.Is(err, reward.ErrOpen) {
				t.Errorf("%s: %v, want ErrOpen", name, err)
			}
		}
	}
}

// BenchmarkVerify judges one command in the agent's sandbox and in a fork of it.
func BenchmarkVerify(b *testing.B) {
	opened, err := sandbox.Open("native", sandbox.Options{StateDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	for _, g := range grounds[:2] {
		b.Run(g.verifier, func(b *testing.B) {
			spec := sandbox.Spec{ID: "bench-" + g.verifier}
			for b.Loop() {
				b.StopTimer()
				sb, err := opened.Open(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				s := reward.Subject{Sandbox: func(context.Context) (sandbox.Sandbox, error) { return sb, nil }, Apart: true, Own: g.own(b, opened, spec, "")}
				b.StartTimer()
				if _, mean, err := reward.Verify(b.Context(), []episode.Check{{Command: "test -d ."}}, s); err != nil || mean != 1 {
					b.Fatal(mean, err)
				}
				b.StopTimer()
				sb.Close()
				b.StartTimer()
			}
		})
	}
}
