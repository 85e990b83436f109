// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// errCrashed is the error of a crashing disk.
var errCrashed = errors.New("no space left")

// crashingDisk works for a number of operations, and fails from then on, like a killed process or a
// full disk. The last write is done in part.
type crashingDisk struct {
	left int
	// unsynced has, by path, the bytes that would be lost if the machine stopped, too.
	unsynced map[string]bool
}

func (d *crashingDisk) step() error {
	if d.left--; d.left < 0 {
		return errCrashed
	}
	return nil
}

func (d *crashingDisk) create(path string) (diskFile, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	f, err := osDisk{}.create(path)
	d.unsynced[path] = true
	return &crashingFile{f, d, path}, err
}

func (d *crashingDisk) rename(from, to string) error {
	if err := d.step(); err != nil {
		return err
	}
	if d.unsynced[from] {
		return errors.New("a file that is not on the disk takes the place of one that is")
	}
	return osDisk{}.rename(from, to)
}

func (d *crashingDisk) syncDir(path string) error {
	if err := d.step(); err != nil {
		return err
	}
	return osDisk{}.syncDir(path)
}

func (d *crashingDisk) remove(path string) error {
	if err := d.step(); err != nil {
		return err
	}
	return osDisk{}.remove(path)
}

type crashingFile struct {
	diskFile
	disk *crashingDisk
	path string
}

// Write writes in pieces, so that there are many points to crash at.
func (f *crashingFile) Write(p []byte) (n int, err error) {
	const piece = 97
	for n < len(p) {
		part := p[n:min(n+piece, len(p))]
		if err := f.disk.step(); err != nil {
			m, _ := f.diskFile.Write(part[:len(part)/2])
			return n + m, err
		}
		m, err := f.diskFile.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (f *crashingFile) Sync() error {
	if err := f.disk.step(); err != nil {
		return err
	}
	delete(f.disk.unsynced, f.path)
	return f.diskFile.Sync()
}

// TestCrashAtEveryPoint: wherever writing ends, the file is the last complete one, or the new one;
// it is the new one if Save has returned nil. Leftovers do not disturb the next write.
func TestCrashAtEveryPoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	points := 0
	for done := false; !done; points++ {
		save(t, osDisk{}, path, entry("a", "old"), entry("b", "old"))
		d := &crashingDisk{left: points, unsynced: map[string]bool{}}
		c := newCache(newSource(t, true, entry("a", "new"), entry("c", "new")), path, d, Options{})
		c.Drain()
		err := c.Save()
		done = err == nil
		if !done && !errors.Is(err, errCrashed) {
			t.Fatal(err)
		}
		loaded := New(newSource(t, false), path)
		got := fmt.Sprint(contents(loaded))
		if refused := loaded.Status().Refused; refused != nil {
			t.Fatalf("after %d operations the file is refused: %v", points, refused)
		}
		if got != "[a new c new]" && (done || got != "[a old b old]") {
			t.Fatalf("after %d operations, done %t, the file has %s", points, done, got)
		}
	}
	if points < 20 {
		t.Errorf("%d points, want many", points)
	}
}

// child is the file that this process, started by TestKill, is to write.
var child = flag.String("checkpoint-child", "", "the file that a child process writes")

// TestChild is the child process: it saves one generation of objects after the other, and
// says which has been saved.
func TestChild(t *testing.T) {
	if *child == "" {
		t.Skip("not a child")
	}
	s := newSource(t, true)
	c := New(s, *child)
	for generation := 1; ; generation++ {
		var objects []configstore.Config
		for i := range 50 {
			objects = append(objects, entry(fmt.Sprintf("e-%02d", i), strconv.Itoa(generation)))
		}
		s.put(t, objects...)
		c.Drain()
		if err := c.Save(); err != nil {
			t.Fatal(err)
		}
		fmt.Println("saved", generation)
	}
}

// TestKill: a process that is killed at any moment leaves a whole file, of the generation
// that it saved last or of the next one.
func TestKill(t *testing.T) {
	tier.NotShort(t, "processes that are killed")
	path := filepath.Join(t.TempDir(), "checkpoint")
	for range 10 {
		last := killed(t, path)
		c := New(newSource(t, false), path)
		if err := c.Status().Refused; err != nil {
			t.Fatal(err)
		}
		objects := c.List(istio.ServiceEntry, "")
		if len(objects) != 50 {
			t.Fatalf("%d objects, want 50", len(objects))
		}
		for _, o := range objects {
			got, _ := strconv.Atoi(o.Labels["text"])
			if got != last && got != last+1 || o.Labels["text"] != objects[0].Labels["text"] {
				t.Fatalf("%s is of generation %d, the last that was saved is %d", o.Name, got, last)
			}
		}
	}
}

// killed starts a child, kills it after a random time, and returns which generation it
// saved last.
func killed(t *testing.T, path string) (last int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-checkpoint-child="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil { // it works
		t.Fatal(err)
	}
	time.AfterFunc(time.Duration(rand.IntN(50_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
	last = 1
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "saved "); ok {
			last, _ = strconv.Atoi(n)
		}
	}
	_ = cmd.Wait() // it was killed
	return last
}
