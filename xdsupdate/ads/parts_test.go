// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestInParts: the guarantees for a few names hold for so many that the work on them is divided and
// differences are computed without the lock. Here a few names count as many.
func TestInParts(t *testing.T) {
	if *parts > 0 {
		t.Skip("all tests are run in parts")
	}
	defer func() { *parts = 0 }()
	sizes := []int{1, 3}
	if !tier.Full() {
		sizes = sizes[1:]
	}
	for _, *parts = range sizes {
		for name, test := range map[string]func(*testing.T){
			"Churn":                   TestChurn,
			"ClientsThatWait":         TestClientsThatWaitForTheFirstPush,
			"DeltaSubscriptions":      TestDeltaSubscriptions,
			"MakeBeforeBreak":         TestMakeBeforeBreak,
			"NameThatComesAndGoes":    TestNameThatComesAndGoesInOneRequest,
			"NothingIsAnAnswer":       TestNothingIsAnAnswer,
			"NothingRemainsOfClients": TestNothingRemainsOfClients,
			"OrderWaitsForAnswers":    TestOrderWaitsForAnswers,
			"RandomHistories":         TestRandomHistories,
			"WarmingAfterReconnect":   TestWarmingAfterReconnect,
			"WhatDoesNotExist":        TestWhatDoesNotExist,
		} {
			t.Run(fmt.Sprintf("%s/parts of %d", name, *parts), test)
		}
	}
}
