// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"math"
	"strconv"
)

// A page of a list has defaultLimit rows by default, and at most maxLimit.
const defaultLimit, maxLimit = 100, 1000

// list is a page of a list.
type list[T any] struct {
	// Total is the length of the list, Matching the number of elements that match the search, From
	// the number of matches before Items.
	Total    int `json:"total"`
	Matching int `json:"matching"`
	From     int `json:"from"`
	Items    []T `json:"items"`
	// Next and Previous are the queries of the neighboring pages, empty if there is no such page.
	Next     string `json:"next,omitempty"`
	Previous string `json:"previous,omitempty"`
}

// First returns the number of the first item. Numbers begin with 1.
func (l list[T]) First() int { return min(l.From+1, l.Last()) }

// Last returns the number of the last item.
func (l list[T]) Last() int { return l.From + len(l.Items) }

// bounds is the part of a list that a request asks for.
type bounds struct{ from, limit int }

func (q *query) bounds() (b bounds, err error) {
	if b.from, err = q.number("from", 0, math.MaxInt32); err != nil {
		return b, err
	}
	b.limit, err = q.number("limit", defaultLimit, maxLimit)
	b.limit = max(b.limit, 1)
	return b, err
}

// listOf returns the page of the matching elements that a request asks for. It calls show only for
// the elements of that page.
func listOf[S, T any](q *query, all []S, matches func(S) bool, show func(S) T) (list[T], error) {
	b, err := q.bounds()
	if err != nil {
		return list[T]{}, err
	}
	out := list[T]{Total: len(all), From: b.from, Items: []T{}}
	for _, element := range all {
		if !matches(element) {
			continue
		}
		if out.Matching >= b.from && len(out.Items) < b.limit {
			out.Items = append(out.Items, show(element))
		}
		out.Matching++
	}
	out.From = min(out.From, out.Matching)
	out.around(q, b)
	return out, nil
}

// around sets the links to the neighboring pages.
func (l *list[T]) around(q *query, b bounds) {
	if l.Last() < l.Matching {
		l.Next = q.with("from", strconv.Itoa(l.Last()))
	}
	if l.From > 0 {
		l.Previous = q.with("from", strconv.Itoa(max(0, l.From-b.limit)))
	}
}
