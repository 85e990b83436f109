// SPDX-License-Identifier: Apache-2.0

package contract

import "sync"

// Gate blocks handlers until it is opened.
type Gate struct {
	// Entered is closed when the first handler comes to the gate.
	Entered <-chan struct{}
	// Open lets all callers pass. It may be called again.
	Open func()

	enter  func()
	opened <-chan struct{}
}

// NewGate returns a gate that is closed.
func NewGate() *Gate {
	entered, opened := make(chan struct{}), make(chan struct{})
	return &Gate{
		Entered: entered, enter: sync.OnceFunc(func() { close(entered) }),
		opened: opened, Open: sync.OnceFunc(func() { close(opened) }),
	}
}

// Pass returns when the gate is open.
func (g *Gate) Pass() {
	g.enter()
	<-g.opened
}
