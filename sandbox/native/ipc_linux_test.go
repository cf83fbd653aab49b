package native_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestKillAllFreesIPC leaves objects of System V, which count as memory of the sandbox and belong to no process.
func TestKillAllFreesIPC(t *testing.T) {
	backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	sb := sandboxtest.Box(t, backend, sandbox.Spec{ID: "ipc"})
	const count = "cat /proc/sysvipc/* | grep -vc key"
	const leave = `import ctypes, os
libc = ctypes.CDLL(None)
for user in 0, 1000:
    if os.fork() == 0:
        try: os.setuid(user)
        except OSError: pass
        for _ in range(20):
            assert libc.shmget(0, 4096, 0o1600) >= 0 and libc.msgget(0, 0o1600) >= 0 and libc.semget(0, 1, 0o1600) >= 0
        os._exit(0)
    assert os.wait()[1] == 0`
	if got := sandboxtest.Sh(t, sb, "python3 -c '"+leave+"'; "+count); got != "120\n" {
		t.Fatalf("objects: %q, want 120", got)
	}
	if err := sb.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := sandboxtest.Sh(t, sb, count+" || true"); got != "0\n" {
		t.Errorf("objects after KillAll: %q, want 0", got)
	}
}
