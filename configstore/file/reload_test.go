// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

func TestReadsEverythingThatIsAManifest(t *testing.T) {
	f := newFixture(t, file.Options{Domain: "cluster.local", DefaultNamespace: "fallback"})
	f.write("a.yaml", docs(entry("a1", "a1"), "# nothing\n", entry("a2", "a2")))
	f.write("deep/er/b.yml", strings.Replace(entry("b", "b"), "/v1", "/v1alpha3", 1))
	f.write("c.json", `{"apiVersion": "networking.istio.io/v1beta1", "kind": "ServiceEntry", "metadata": {"name": "c"},
		"spec": {"hosts": ["c"], "resolution": "NONE", "ports": [{"number": 1, "name": "tcp"}]}}`)
	f.write("list.yaml", "apiVersion: v1\nkind: List\nitems:\n- "+
		strings.ReplaceAll(strings.TrimSpace(entry("d", "d")), "\n", "\n  ")+"\n")
	f.write("e.txt", entry("e", "e"))
	f.write("f.YAML", entry("f", "f"))
	f.write(".hidden.yaml", entry("g", "g"))
	f.write(".git/h.yaml", entry("h", "h"))
	f.write("empty.yaml", "")
	f.write("comment.yaml", "# only a comment\n---\n")
	f.reload()
	f.wantErrors()
	f.wantStore("fallback/c=c", "ns/a1=a1", "ns/a2=a2", "ns/b=b", "ns/d=d")
	stored := f.store.Get(istio.ServiceEntry, "b", "ns")
	if stored.GroupVersionKind != istio.ServiceEntry || stored.Domain != "cluster.local" {
		t.Errorf("kind %v, domain %q, want the canonical kind and the domain of the options", stored.GroupVersionKind, stored.Domain)
	}
}

func TestFollowsChanges(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one")))
	f.write("c.yaml", entry("c", "one"))
	f.reload()
	f.wantEvents("add ns/a=one", "add ns/b=one", "add ns/c=one")
	f.write("a.yaml", docs(entry("b", "two"), entry("d", "one")))
	f.reload()
	f.wantEvents("update ns/b=two", "add ns/d=one", "delete ns/a=one")
	f.remove("a.yaml")
	f.reload()
	f.wantEvents("delete ns/b=two", "delete ns/d=one")
	f.wantStore("ns/c=one")
}

func TestUnchangedObjectsKeepTheirRevision(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one")))
	f.reload()
	before, created := f.store.Get(istio.ServiceEntry, "a", "ns"), f.store.Revision()
	f.reload()
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one")))
	f.reload()
	f.write("a.yaml", docs("# other text\n"+entry("b", "one"), strings.Replace(entry("a", "one"),
		"metadata:", "metadata:\n  resourceVersion: '12345'\n  generation: 7", 1)))
	f.reload()
	f.wantEvents()
	if f.store.Revision() != created {
		t.Errorf("revision of the store went from %d to %d without a change", created, f.store.Revision())
	}
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "two")))
	f.reload()
	f.wantEvents("update ns/b=two")
	if after := f.store.Get(istio.ServiceEntry, "a", "ns"); after != before {
		t.Errorf("object was replaced: revision %s, then %s", before.ResourceVersion, after.ResourceVersion)
	}
}

// Each way of being bad costs the object that is bad nothing but the change.
func TestBadDocumentKeepsLastGoodState(t *testing.T) {
	for _, tt := range []struct {
		name, bad, want string
		is              error
	}{
		{"unknown field", unknownField("b"), "a.yaml:21:3: document 2, ServiceEntry ns/b: spec.hostz: unknown field", manifest.ErrMalformed},
		{"broken YAML", brokenYAML("b"), "a.yaml:2", manifest.ErrMalformed},
		{"invalid", invalid("b"), "a.yaml:24:5: document 2, ServiceEntry ns/b: ", configstore.ErrInvalid},
		{"cut off in a string", strings.Replace(entry("b", "half"), `half.test"`, "half", 1), "a.yaml:", manifest.ErrMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, file.Options{})
			f.write("a.yaml", docs(entry("a", "one"), entry("b", "one"), entry("c", "one"), entry("d", "one")))
			f.write("z.yaml", entry("z", "one"))
			f.reload()
			f.wantErrors()
			f.write("a.yaml", docs(entry("a", "two"), tt.bad, entry("c", "two")))
			f.write("z.yaml", entry("z", "two"))
			f.reload()
			f.wantEvents("update ns/a=two", "update ns/c=two", "update ns/z=two", "delete ns/d=one")
			f.wantErrors(tt.want)
			e := f.source.Errors()[0]
			if !errors.Is(e, tt.is) || e.Document != 2 || e.Object.Name != "b" || e.File != f.path("a.yaml") {
				t.Errorf("error %+v, want %v in document 2 about b", e, tt.is)
			}
			f.reload()
			f.wantEvents()
			f.wantErrors(tt.want)
			f.write("a.yaml", docs(entry("a", "two"), entry("b", "two"), entry("c", "two")))
			f.reload()
			f.wantEvents("update ns/b=two")
			f.wantErrors()
		})
	}
}

func TestBadFromTheStart(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(unknownField("a"), entry("b", "one"), invalid("c"), brokenYAML("d"), "just text\n", entry("e", "one")))
	f.reload()
	f.wantStore("ns/b=one", "ns/e=one")
	f.wantErrors("a.yaml:7:", "a.yaml:39:", "a.yaml:")
	if !f.source.HasSynced() {
		t.Error("HasSynced is false: bad documents must not hold the rest up")
	}
	f.write("a.yaml", docs(entry("a", "one"), entry("c", "one")))
	f.reload()
	f.wantStore("ns/a=one", "ns/c=one")
	f.wantErrors()
}

// If it cannot be read which object a document is about, all that are missing
// from the file stay.
func TestUnreadableDocumentKeepsWhatIsMissing(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one"), entry("c", "one")))
	f.reload()
	f.write("a.yaml", docs(entry("a", "two"), "kind: [\n", unknownField("c")))
	f.reload()
	f.wantEvents("update ns/a=two")
	f.wantStore("ns/a=two", "ns/b=one", "ns/c=one")
	f.wantErrors("a.yaml:", "a.yaml:")
	// Another file that defines the object wins against a memory of it.
	f.write("z.yaml", entry("b", "moved"))
	f.reload()
	f.wantEvents("update ns/b=moved")
	f.wantErrors("a.yaml:", "a.yaml:")
	f.write("a.yaml", docs(entry("a", "two"), entry("c", "two")))
	f.reload()
	f.wantEvents("update ns/c=two")
	f.wantStore("ns/a=two", "ns/b=moved", "ns/c=two")
	f.wantErrors()
}

// Two documents whose separator was lost are not mistaken for one of them.
func TestLostSeparatorDeletesNothing(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one")))
	f.reload()
	for _, separator := range []string{"", "--\n", "- --\n"} {
		f.write("a.yaml", entry("a", "two")+separator+entry("b", "two"))
		f.reload()
		f.wantEvents()
		f.wantStore("ns/a=one", "ns/b=one")
		f.wantErrors("a.yaml:")
	}
}

// Directories are shared with other programs: foreign documents are counted.
func TestForeignDocumentsAreCounted(t *testing.T) {
	f := newFixture(t, file.Options{DefaultNamespace: "default"})
	f.write("a.yaml", docs("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: ns}\nspec: {replicas: 1}\n",
		entry("a", "one"), "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1\n"))
	f.write("chart/Chart.yaml", "apiVersion: v2\nname: bookinfo\nversion: 1.0.0\n")
	f.write("chart/values.yaml", "replicaCount: 1\nimage: {repository: nginx}\n")
	f.write("chart/deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\nspec: {replicas: {{ .Values.replicaCount }}\n")
	f.write("ui/package.json", `{"name": "ui", "dependencies": {"a": "^1.0.0"}}`)
	f.write("text.yaml", "hello\n---\n- a\n- b\n")
	f.reload()
	f.wantStore("ns/a=one")
	f.wantErrors()
	if r := f.source.Report(); r.Foreign != 3 || r.Other != 5 || len(r.Warnings) > 0 {
		t.Errorf("%d foreign and %d other documents, %d warnings, want 3, 5 and none", r.Foreign, r.Other, len(r.Warnings))
	}
	if f.log.Len() > 0 {
		t.Errorf("logged, want nothing:\n%s", f.log)
	}
	// An object is deleted even if a foreign document has its name.
	f.write("a.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: ns}\n")
	f.reload()
	f.wantEvents("delete ns/a=one")
	f.wantErrors()
}

// A document that may have been an object before is not foreign.
func TestForeignDocumentInPlaceOfAnObject(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"mistyped group", strings.Replace(entry("b", "two"), "networking.istio.io", "networking.istio.oi", 1), "a.yaml:16:1: document 2, ServiceEntry ns/b: kind: unknown kind networking.istio.oi/v1/ServiceEntry: did you mean networking.istio.io/v1/ServiceEntry?"},
		{"half written", "apiV\n", `a.yaml:15:1: document 2: must be an object, is "apiV"`},
		{"overwritten", "a: b\n", "a.yaml:15:1: document 2: line 15, column 1: apiVersion: is required; line 15, column 1: kind: is required"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, file.Options{})
			f.write("a.yaml", docs(entry("a", "one"), entry("b", "one"), entry("c", "one")))
			f.reload()
			f.write("a.yaml", docs(entry("a", "one"), tt.text, entry("c", "one")))
			for _, host := range []string{"two", "three"} {
				f.reload()
				f.wantEvents()
				f.wantErrors(tt.want)
				// Another change of the file, which leaves the document as it is.
				f.write("a.yaml", docs(entry("a", "one"), tt.text, entry("c", host)))
				f.reload()
				f.wantEvents("update ns/c=" + host)
				f.wantStore("ns/a=one", "ns/b=one", "ns/c="+host)
				f.wantErrors(tt.want)
			}
			f.write("a.yaml", docs(entry("a", "one"), entry("c", "three")))
			f.reload()
			f.wantEvents("delete ns/b=one")
			f.wantErrors()
		})
	}
}

// A document that was there before, and was not about an object, does not keep one
// that is deleted now.
func TestForeignDocumentBesideADeletedObject(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs("a: b\n", entry("x", "one"), entry("z", "one")))
	f.reload()
	f.write("a.yaml", docs("a: b\n", entry("z", "one")))
	f.reload()
	f.wantEvents("delete ns/x=one")
	f.wantErrors()
}

func TestMistypedKindDeletesNothing(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one")))
	f.reload()
	mistyped := strings.Replace(entry("a", "two"), "ServiceEntry", "ServiceEntri", 1)
	for _, b := range []string{"two", "three"} {
		f.write("a.yaml", docs(mistyped, entry("b", b)))
		f.reload()
		f.wantEvents("update ns/b=" + b)
		f.wantErrors("a.yaml:2:1: document 1, ServiceEntri ns/a: ")
		if e := f.source.Errors()[0]; !errors.Is(e, configstore.ErrUnknownKind) {
			t.Errorf("%v is no ErrUnknownKind", e)
		}
	}
	f.write("a.yaml", docs(entry("a", "two"), entry("b", "three")))
	f.reload()
	f.wantEvents("update ns/a=two")
	f.write("a.yaml", docs(mistyped, entry("b", "three")))
	f.reload()
	f.remove("a.yaml")
	f.reload()
	f.wantEvents("delete ns/a=two", "delete ns/b=three")
}

// Without a schema there is no default namespace, so that the name decides.
func TestMistypedKindInTheDefaultNamespace(t *testing.T) {
	f := newFixture(t, file.Options{DefaultNamespace: "fallback"})
	text := strings.Replace(entry("a", "one"), "  namespace: ns\n", "", 1)
	f.write("a.yaml", docs(text, entry("b", "one")))
	f.reload()
	f.write("a.yaml", docs(strings.Replace(text, "ServiceEntry", "ServiceEntri", 1), entry("b", "one")))
	f.reload()
	f.wantEvents()
	f.wantErrors("a.yaml:2:1: document 1, ServiceEntri a: ")
}

// That a foreign document is not about an object is remembered while its file
// cannot be read.
func TestForeignDocumentOfAFileThatComesBack(t *testing.T) {
	f := newFixture(t, file.Options{MaxDocuments: 3})
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: ns}\n"
	f.write("a.yaml", docs(deployment, entry("a", "one")))
	f.reload()
	f.write("a.yaml", strings.Repeat("---\n", 9))
	f.reload()
	f.wantEvents()
	f.wantErrors("a.yaml: the input has more than 3 documents")
	f.write("a.yaml", docs(deployment, entry("b", "one")))
	f.reload()
	f.wantEvents("add ns/b=one", "delete ns/a=one")
	f.wantErrors()
}

func TestLenient(t *testing.T) {
	f := newFixture(t, file.Options{Lenient: true})
	f.write("a.yaml", unknownField("a"))
	f.reload()
	f.wantStore("ns/a=bad.example.com")
	f.wantErrors()
}

func TestErrorsAreLoggedOnce(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", unknownField("a"))
	for range 3 {
		f.reload()
	}
	f.write("b.yaml", entry("b", "one"))
	f.reload()
	if n := strings.Count(f.log.String(), "spec.hostz"); n != 1 {
		t.Errorf("error was logged %d times, want once:\n%s", n, f.log)
	}
	f.write("a.yaml", entry("a", "one"))
	f.reload()
	f.reload()
	if n := strings.Count(f.log.String(), "manifest error gone"); n != 1 {
		t.Errorf("end of the error was logged %d times, want once:\n%s", n, f.log)
	}
	f.write("a.yaml", "broken: [")
	f.reload()
	if strings.Contains(f.log.String(), "//") {
		t.Errorf("an object that is not known is logged as an empty key:\n%s", f.log)
	}
}

// A link that leads in a circle, or to a directory that is there already, is not
// followed; one that leads elsewhere is. Each has its own case, as several circles
// have more paths than a walk without an end can take.
func TestLinkedDirectories(t *testing.T) {
	for link, target := range map[string]string{
		"real/circle": ".", "real/up": "..", "twice": "real", "real/out": "../../outside", "self": "SELF",
	} {
		t.Run(link, func(t *testing.T) {
			f := newFixture(t, file.Options{})
			f.write("real/a.yaml", entry("a", "one"))
			f.write("../outside/b.yaml", entry("b", "one"))
			f.symlink("../outside", "out")
			f.symlink(strings.Replace(target, "SELF", f.dir, 1), link)
			f.reload()
			f.wantStore("ns/a=one", "ns/b=one")
			f.wantErrors()
			f.write("real/a.yaml", entry("a", "two"))
			f.remove("out")
			f.remove("real/out")
			f.reload()
			f.wantEvents("update ns/a=two", "delete ns/b=one")
		})
	}
}

// TestSynced: the source has synced after the first reload that reads the directory.
func TestSynced(t *testing.T) {
	f := newFixture(t, file.Options{})
	if f.source.HasSynced() {
		t.Error("synced before anything was read")
	}
	for range 2 {
		if f.reload(); !f.source.HasSynced() {
			t.Error("not synced after a reload")
		}
	}
}
