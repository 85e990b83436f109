// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// call is one call of go test.
type call struct {
	module   string
	race     bool
	flags    []string
	env      []string
	packages []pkg
}

// calls returns the calls that test the packages. The race detector sees all packages in the full
// tier and none in the short one. By default it sees the listed packages of the root
// module, and all other modules.
func (o options) calls(packages []pkg) (calls []call) {
	add := func(race bool, flags []string, p pkg) {
		i := slices.IndexFunc(calls, func(c call) bool { return c.module == p.module && c.race == race && slices.Equal(c.flags, flags) })
		if i < 0 {
			i = len(calls)
			calls = append(calls, call{module: p.module, race: race, flags: flags, env: o.env})
		}
		calls[i].packages = append(calls[i].packages, p)
	}
	for _, p := range packages {
		rule, listed := raced[p.dir]
		switch {
		case o.tier == short || o.tier == byDefault && !listed && p.module == ".":
			add(false, o.flags, p)
		case o.tier == full || !rule.plain():
			add(true, o.flags, p)
		case o.selects():
			add(rule.only == "", o.flags, p)
		default:
			race, plain := rule.flags()
			add(false, slices.Concat(o.flags, plain), p)
			add(true, slices.Concat(o.flags, race), p)
		}
	}
	// Calls without the race detector come first, because they give results soonest.
	slices.SortStableFunc(calls, func(a, b call) int { return btoi(a.race) - btoi(b.race) })
	return calls
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ready checks the prerequisites of the calls, so that a missing one is reported in one line.
func ready(ctx context.Context, calls []call) error {
	var checked []string
	for _, c := range calls {
		if !slices.Contains(checked, c.module) {
			checked = append(checked, c.module)
			if _, err := output(ctx, c.module, "mod", "download"); err != nil {
				return fmt.Errorf("the modules that %s requires cannot be fetched: %w", c.module, err)
			}
		}
	}
	if !slices.ContainsFunc(calls, func(c call) bool { return c.race }) {
		return nil
	}
	compiler, err := output(ctx, ".", "env", "CC")
	if err != nil {
		return err
	}
	if fields := strings.Fields(compiler); len(fields) > 0 {
		if _, err := exec.LookPath(fields[0]); err != nil {
			return fmt.Errorf("the race detector needs a C compiler, and there is no %s; -short does without", fields[0])
		}
	}
	return nil
}

// test makes the call, and has its results reported. That tests fail is no error: the report
// has it.
func (c call) test(ctx context.Context, r *report) error {
	args := []string{"test", "-json", "-vet=off", "-timeout=30m"} // the linter includes vet
	if c.race {
		args = append(args, "-race")
	}
	args = append(args, c.flags...)
	for _, p := range c.packages {
		args = append(args, p.argument())
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = c.module, append(os.Environ(), c.env...), os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	events(stdout, r)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.ended(c)
	}
	return nil
}

// events reports the lines that go test prints.
func events(from io.Reader, r *report) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err != nil {
			return
		}
	}
}
