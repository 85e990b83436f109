// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// past is the record of the runs of one package in the full tier.
type past struct {
	Last    time.Time
	Seconds float64
}

// guess is how long a package takes that has not been run.
const guess = 60

// memory returns the file that remembers when which package was run. It is a cache: without
// it the order of packages begins at another place each day.
func memory() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "pilotkit", "full-tests.json"), err
}

// rotate runs the packages of the calls, least recently run first, as far as they are expected to
// end within the budget, and at least one.
func (o options) rotate(ctx context.Context, calls []call) error {
	file, err := memory()
	if err != nil {
		return err
	}
	pasts := remembered(file)
	var parts []call
	for _, c := range calls {
		for _, p := range c.packages {
			part := c
			part.packages = []pkg{p}
			parts = append(parts, part)
		}
	}
	begun := time.Now()
	report := newReport(os.Stdout, o.verbose)
	var ran, left []string
	for _, part := range inOrder(parts, pasts, begun) {
		name := part.packages[0].dir
		expected := time.Duration(pasts[name].Seconds * float64(time.Second))
		if len(ran) > 0 && time.Since(begun)+expected > o.budget {
			left = append(left, name)
			continue
		}
		started := time.Now()
		if err := part.test(ctx, report); err != nil {
			return err
		}
		ran = append(ran, name)
		pasts[name] = past{Last: started, Seconds: time.Since(started).Seconds()}
		if err := remember(file, pasts); err != nil {
			return err
		}
	}
	report.print(fmt.Sprintf("ran in full: %v\nleft for another run: %v\n", ran, left))
	return report.close()
}

// inOrder sorts the parts, least recently run first. Among parts that were never run the day
// decides which comes first.
func inOrder(parts []call, pasts map[string]past, today time.Time) []call {
	day := int(today.Unix() / (24 * 60 * 60))
	begin := day * len(parts) / 3 % max(1, len(parts))
	parts = slices.Concat(parts[begin:], parts[:begin])
	for _, p := range parts {
		if name := p.packages[0].dir; pasts[name].Seconds == 0 {
			pasts[name] = past{Seconds: guess}
		}
	}
	slices.SortStableFunc(parts, func(a, b call) int {
		return pasts[a.packages[0].dir].Last.Compare(pasts[b.packages[0].dir].Last)
	})
	return parts
}

func remembered(file string) map[string]past {
	pasts := make(map[string]past)
	if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &pasts) != nil {
		return make(map[string]past) // another version of it
	}
	return maps.Clone(pasts)
}

func remember(file string, pasts map[string]past) error {
	data, err := json.Marshal(pasts)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
