// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// insideVariable is set in a process that runs in a network namespace of its own:
// "probe" asks only whether that can be made.
const insideVariable = "PILOTKIT_GATEWAYCONFORMANCE_INSIDE"

func isInside() bool { return os.Getenv(insideVariable) == "yes" }

// requireNamespace skips the test, with the reason, where no network namespace with a
// bridge can be made. If PILOTKIT_REQUIRE_CLIENTS is set, it fails.
func requireNamespace(t *testing.T) {
	t.Helper()
	var out strings.Builder
	if err := runInside(t, "probe", &out, "-test.run=^$"); err != nil {
		why := fmt.Sprintf("no network namespace can be made: %v: %s", err, strings.TrimSpace(out.String()))
		if os.Getenv("PILOTKIT_REQUIRE_CLIENTS") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
}

// runAgain runs a test again, in a network namespace with the suite's echo server.
func runAgain(t *testing.T) {
	t.Helper()
	t.Setenv(echoVariable, buildEcho(t))
	enter(t)
}

// enter runs a test again, or its selected subtests, in a network namespace, with the flags of this
// process. The output becomes output of the test.
func enter(t *testing.T) {
	t.Helper()
	_, subtests, found := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	only := "^" + t.Name() + "$"
	if found {
		only += "/" + subtests
	}
	args := []string{"-test.v", "-test.paniconexit0", "-test.run=" + only}
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "test.run", "test.v", "test.paniconexit0", "test.testlogfile", "test.count", "test.gocoverdir", "test.coverprofile", "test.outputdir":
		default:
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	if err := runInside(t, "yes", t.Output(), args...); err != nil {
		t.Error(err)
	}
}

// runInside runs this program in a network namespace of its own and, without root, in a user
// namespace as its root.
func runInside(t *testing.T, inside string, out io.Writer, args ...string) error {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	// The process ends with the thread that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), insideVariable+"="+inside)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return cmd.Run()
}
