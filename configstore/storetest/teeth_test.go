// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

func referenceFactory(fault string) storetest.Factory {
	return func(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
		tb.Helper()
		r := newReference(schemas, fault)
		tb.Cleanup(r.kill)
		s := storetest.Subject{Store: r, History: r.history}
		if fault != "" {
			s.Timeout = 100 * time.Millisecond
		}
		return s
	}
}

// writesThrough is the fault of a read-only store that writes.
const writesThrough = "a read-only store writes"

// readOnly hides the write methods of a store.
type readOnly struct{ *reference }

func (r readOnly) Create(c configstore.Config) (string, error) { return r.deny(c, r.reference.Create) }

func (r readOnly) Update(c configstore.Config) (string, error) { return r.deny(c, r.reference.Update) }

func (r readOnly) UpdateStatus(c configstore.Config) (string, error) {
	return r.deny(c, r.reference.UpdateStatus)
}

func (r readOnly) Delete(configstore.GroupVersionKind, string, string, *string) error {
	return configstore.ErrReadOnly
}

func (r readOnly) deny(c configstore.Config, write func(configstore.Config) (string, error)) (string, error) {
	if r.is(writesThrough) {
		return write(c)
	}
	return "", configstore.ErrReadOnly
}

func readOnlyFactory(fault string) storetest.Factory {
	return func(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
		tb.Helper()
		r := newReference(schemas, fault)
		tb.Cleanup(r.kill)
		return storetest.Subject{Store: readOnly{r}, Writer: r, CatchUp: func() {}}
	}
}

func TestReferencePasses(t *testing.T) {
	storetest.TestStore(t, referenceFactory(""))
	storetest.TestCache(t, referenceFactory(""))
}

func TestReadOnlyReferencePasses(t *testing.T) {
	storetest.TestStore(t, readOnlyFactory(""))
	storetest.TestCache(t, readOnlyFactory(""))
}

// teeth has a broken store for each promise: check -> faults that it finds.
func teeth() map[string][]string {
	return map[string][]string{
		"Schemas":                   {"schemas lack a kind"},
		"Get/Absent":                {"get ignores the namespace"},
		"Get/Written":               {"reads lag"},
		"Get/Keys":                  {"key without separator", "get ignores the namespace"},
		"Get/Alias":                 {"aliases are kinds of their own"},
		"Get/ClusterScoped":         {"cluster-scoped kinds are not listed"},
		"List/Written":              {"cached lists are stale", "reads lag"},
		"List/Sorted":               {"lists are sorted by text", "lists are sorted by time"},
		"List/Namespace":            {"list ignores the namespace", "empty lists are not nil"},
		"List/Snapshot":             {"lists change in place"},
		"Get/Shared":                {"get copies"},
		"Create/Exists":             {"create overwrites"},
		"Create/Revision":           {"create takes the caller's version", "an annotation is the version"},
		"Create/Generation":         {"generation of the caller"},
		"Create/CreationTime":       {"no creation time", "creation time is always now"},
		"Create/Status":             {"create drops the status"},
		"Create/Kind":               {"every write names its kind"},
		"UnknownKind":               {"unknown kinds accepted"},
		"Invalid":                   {"no validation", "one violation only"},
		"Invalid/Shape":             {"shapes are not checked", "no validation"},
		"Errors/Text":               {"bare errors"},
		"Update/NotFound":           {"update creates"},
		"Update/Replaces":           {"update merges labels"},
		"Update/Conflict":           {"update ignores the revision"},
		"Update/Overwrite":          {"update needs a revision"},
		"Update/Revision":           {"versions repeat", "an annotation is the version"},
		"Update/CreationTime":       {"update forgets the creation time", "creation time never changes"},
		"Update/Generation":         {"generation counts updates"},
		"Update/NoOp":               {"no-ops are updates"},
		"UpdateStatus/StatusOnly":   {"status replaces everything"},
		"UpdateStatus/KeyOnly":      {"status needs the spec"},
		"UpdateStatus/NotFound":     {"status creates"},
		"UpdateStatus/Conflict":     {"status ignores the revision"},
		"UpdateStatus/NoOp":         {"status no-ops are updates"},
		"UpdateStatus/Invalid":      {"status is not checked"},
		"Delete/NotFound":           {"deleting nothing is fine"},
		"Delete/Conflict":           {"delete ignores the revision"},
		"Delete/Revision":           {"delete needs a revision"},
		"Ownership/Arguments":       {"mutates arguments"},
		"Ownership/Results":         {"updates in place"},
		"Concurrent/Create":         {"check, then write"},
		"Concurrent/Update":         {"check, then write", "update ignores the revision"},
		"Concurrent/Delete":         {"check, then write", "deleting nothing is fine"},
		"Concurrent/LostUpdate":     {"check, then write", "update ignores the revision"},
		"Concurrent/Readers":        {"writes have two parts", "lists are sorted by time"},
		"Revision/Grows":            {"refused writes take a revision", "no-ops are updates"},
		"Batch/All":                 {"batches lose the last"},
		"Batch/Upsert":              {"an upsert creates"},
		"Batch/Nothing":             {"batches are not atomic"},
		"Batch/Checked":             {"any evidence will do", "no validation"},
		"Watch/Complete":            {"watch forgets deletes"},
		"Watch/End":                 {"watch ignores its context"},
		"Watch/Compacted":           {"watch has silent gaps"},
		"Events/Add":                {"curr is the caller's"},
		"Events/Update":             {"old is a clone"},
		"Events/UpdateStatus":       {"status changes send no event"},
		"Events/Delete":             {"delete has an old", "delete has no content"},
		"Events/Recreate":           {"events of a key are merged"},
		"Events/Kind":               {"handlers are kept under the alias"},
		"Events/NoOp":               {"no-ops are updates", "status no-ops are updates"},
		"Events/Refused":            {"refused writes send events"},
		"Events/Batch":              {"events of a batch are reversed"},
		"Order/Kinds":               {"kinds have queues"},
		"Order/Handlers":            {"handlers run in reverse"},
		"Order/OneWorker":           {"handlers run at once"},
		"Order/Concurrent":          {"events are queued after the commit"},
		"Order/Agreement":           {"handlers have queues"},
		"Replay/Early":              {"no replay"},
		"Replay/Late":               {"no late replay"},
		"Replay/Zero":               {"a replay is an update"},
		"Replay/Others":             {"replays reach all"},
		"Replay/Concurrent":         {"a gap at registration"},
		"Replay/BeforeRun":          {"a full queue blocks", "a full queue drops", "events are handed over in Create"},
		"Handler/Blocks/Writers":    {"a full queue blocks", "a full queue drops", "handlers run under the lock", "events are handed over in Create"},
		"Handler/Blocks/Readers":    {"handlers run under the lock"},
		"Handler/Writes":            {"handlers run under the lock"},
		"Handler/Registers":         {"no registration in handlers", "handlers run under the lock"},
		"Fresh/Get":                 {"reads lag"},
		"Fresh/List":                {"reads lag", "cached lists are stale"},
		"Fresh/Kinds":               {"reads lag far"},
		"Register/UnknownKind":      {"unknown kinds may be watched"},
		"Run/Twice":                 {"run twice is fine"},
		"Run/Stop":                  {"run does not stop"},
		"Run/Joins":                 {"run does not join", "the queue is drained after stop"},
		"HasSynced/Handlers":        {"synced at once"},
		"HasSynced/True":            {"never synced"},
		"Subscribe/Cancel":          {"cancel does nothing"},
		"Subscribe/CancelBeforeRun": {"cancel does nothing"},
		"Subscribe/CancelInHandler": {"cancel does nothing"},
		"Subscribe/Timeline":        {"batches lack old"},
		"Subscribe/Complete":        {"subscribe lists nothing", "what is listed is replayed"},
		"Subscribe/After":           {"batches come first"},
		"Subscribe/Whole":           {"batches are cut"},
		"Drain":                     {"drain makes one pass"},
		"Drain/HasSynced":           {"synced at once", "never synced"},
		"Flush":                     {"flush does not wait"},
		"Flush/Alone":               {"flush needs a worker", "flush does not wait"},
		"Flush/Ended":               {"flush succeeds after the end"},
		"Flush/Context":             {"flush ignores its context"},
		"ReadOnly":                  {writesThrough},
	}
}

func TestEveryBrokenPromiseIsFound(t *testing.T) {
	storetest.ExpectTeeth(t, teeth(), func(fault string) storetest.Factory {
		if fault == writesThrough {
			return readOnlyFactory(fault)
		}
		return referenceFactory(fault)
	})
}
