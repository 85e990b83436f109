// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tier is how much of the tests runs.
type tier string

const (
	short     tier = "short"
	byDefault tier = "default"
	full      tier = "full"
)

// options are the options of the command line.
type options struct {
	tier     tier
	patterns []string // folders of the repository, as ./aggregate or ./configstore/...
	flags    []string // for go test
	env      []string // for the tests
	verbose  bool     // all output is shown, not only that of tests that fail
	budget   time.Duration
}

// switches are the flags of go test without a value.
//
//nolint:gochecknoglobals // a table
var switches = []string{"-v", "-json", "-failfast", "-benchmem", "-cover", "-a", "-x", "-n", "-c", "-race"}

func parse(args []string) (options, error) {
	o := options{tier: byDefault}
	open := false // the flag before has its value in the next argument
	for _, arg := range args {
		switch name, value, _ := strings.Cut(arg, "="); {
		case open:
			o.flags, open = append(o.flags, arg), false
		case arg == "." || strings.HasPrefix(arg, "./"):
			o.patterns = append(o.patterns, arg)
		case arg == "-short" || arg == "-full":
			if o.tier != byDefault {
				return options{}, errors.New("-short and -full exclude each other")
			}
			o.tier = tier(arg[1:])
		case name == "-histories":
			if _, err := strconv.ParseUint(value, 10, 32); err != nil {
				return options{}, fmt.Errorf("-histories=%s is not a number", value)
			}
			o.env = append(o.env, "PILOTKIT_HISTORIES="+value)
		case name == "-budget":
			var err error
			if o.budget, err = time.ParseDuration(value); err != nil || o.budget <= 0 {
				return options{}, fmt.Errorf("-budget=%s is not a duration, such as 20m", value)
			}
		case strings.HasPrefix(arg, "-"):
			o.flags = append(o.flags, arg)
			o.verbose = o.verbose || name == "-v" || name == "-bench"
			open = name == arg && !slices.Contains(switches, arg)
		default:
			return options{}, fmt.Errorf("%q is neither a flag nor a folder of packages, such as ./aggregate", arg)
		}
	}
	return o.complete()
}

// selects reports whether the flags select tests by name.
func (o options) selects() bool {
	return slices.ContainsFunc(o.flags, func(flag string) bool { return strings.HasPrefix(flag, "-run") || strings.HasPrefix(flag, "-skip") })
}

// atOnce returns how many calls run at the same time: two, because many tests wait for another
// process and leave the processor free; one if all output is shown, or benchmarks are measured.
func (o options) atOnce() int {
	if o.verbose {
		return 1
	}
	return 2
}

// complete validates the combination of options, and sets the dependent ones.
func (o options) complete() (options, error) {
	if o.budget > 0 && o.tier != full {
		return options{}, errors.New("-budget is for -full")
	}
	if len(o.patterns) == 0 {
		o.patterns = []string{"./..."}
	}
	switch o.tier {
	case short:
		o.flags = append(o.flags, "-short")
	case full:
		o.env = append(o.env, "PILOTKIT_TESTS=full")
	case byDefault:
	}
	return o, nil
}
