package submit

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/client/jobs"
	"holdfast/client/localfile"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// TestTheBinaryIsTheSame: whoever brings it, and when. Of two who submit for the first
// time at once, both do, and NodeManagers hold each to what it has told of it.
func TestTheBinaryIsTheSame(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "exe")
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	ctx := context.Background()
	if err := os.WriteFile(exe, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	sum, err := localfile.Digest(ctx, exe)
	if err != nil {
		t.Fatal(err)
	}
	first, err := uploadBinary(ctx, home, exe, sum, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Remove(ctx, "bin/"+sum+"/"+binaryName); err != nil { // the other one had not seen it
		t.Fatal(err)
	}
	second, err := uploadBinary(ctx, home, exe, sum, nil)
	if err != nil || first != second {
		t.Errorf("first %+v, then %+v, %v", first, second, err)
	}
	before, err := home.Stat(ctx, "bin/"+sum+"/"+binaryName)
	if err != nil {
		t.Fatal(err)
	}
	if err := uploadShared(ctx, home, "bin/"+sum+"/"+binaryName, exe, sum, before.Size, 0o700, nil); err != nil {
		t.Error(err)
	}
	if after, err := home.Stat(ctx, "bin/"+sum+"/"+binaryName); err != nil || after != before {
		t.Errorf("the other's was %+v, now %+v, %v; a NodeManager may be reading it", before, after, err)
	}
	if left, err := home.List(ctx, "bin/"+sum); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// Nodes keep what they have unpacked by its address and time: those of an archive that
// another job brings again are the same.
func TestArchivesAreSharedByJobs(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "venv.tar.gz")
	if err := os.WriteFile(archive, []byte("archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	set, err := jobtls.New("j")
	if err != nil {
		t.Fatal(err)
	}
	venv := func() *proto.FileSpec {
		t.Helper()
		return collected(t, archive, true)
	}
	var first yarn.LocalResource
	for _, id := range []string{"one", "two"} {
		got, err := upload(t.Context(), home, jobs.Directory(id), &proto.JobSpec{Files: []*proto.FileSpec{venv()}}, set, nil)
		if err != nil || len(got) != 1 || got[0].Visibility != yarn.Private || !got[0].Archive || got[0].Name != "venv" {
			t.Fatalf("%+v, %v", got, err)
		}
		if id == "one" {
			first = got[0]
		} else if got[0] != first {
			t.Errorf("first %+v, then %+v", first, got[0])
		}
	}
	if err := os.WriteFile(archive, []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := uploadArchive(t.Context(), home, venv(), nil); err != nil || r.URI == first.URI {
		t.Errorf("another archive of the same name and size: %+v, %v", r, err)
	}
}

// What is told of an upload grows to all of it, and what is there already does not count.
func TestProgressOfUploads(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	job := func(id string) (told int, done, total int64) {
		set, err := jobtls.New(id)
		if err != nil {
			t.Fatal(err)
		}
		files := newTransfer(func(d, all int64) {
			if d <= done || d > all {
				t.Errorf("%d of %d bytes are told after %d", d, all, done)
			}
			told, done, total = told+1, d, all
		})
		_, err = upload(t.Context(), home, jobs.Directory(id), &proto.JobSpec{Files: []*proto.FileSpec{
			collected(t, big, false), collected(t, big, true),
		}}, set, files)
		if err != nil {
			t.Fatal(err)
		}
		return told, done, total
	}
	if told, done, total := job("application_1_0001"); told < 5 || done != 10<<20 || total != 10<<20 {
		t.Errorf("the first job was told %d times, last %d of %d", told, done, total)
	}
	if _, done, total := job("application_1_0002"); done != 5<<20 || total != 5<<20 {
		t.Errorf("the second job, whose archive was there, was told %d of %d", done, total)
	}
}

// collected returns a local file as one of a job's, with the digest that it has now.
func collected(t *testing.T, file string, archive bool) *proto.FileSpec {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := localfile.Digest(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	name := "file"
	if archive {
		name = "venv"
	}
	return &proto.FileSpec{Name: name, Uri: file, Size: info.Size(), Mode: uint32(info.Mode().Perm()), Archive: archive, Sha256: sum}
}

// TestInputsWithSpecialNames: whatever files and archives are called, what YARN and agents are told of
// them are URIs of what was uploaded, and HDFS, which has no colons in names, takes them.
func TestInputsWithSpecialNames(t *testing.T) {
	local := filepath.Join(t.TempDir(), "a%20b#c?d:e=3A $`\".tar.gz")
	if err := os.WriteFile(local, []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	set, err := jobtls.New("j")
	if err != nil {
		t.Fatal(err)
	}
	spec := &proto.JobSpec{}
	for _, name := range []string{"50%", "50%25/x", "a#b", "a?b", "10:30/log", "a=3Ab", "a:b", "\u00fcber alles"} {
		f := collected(t, local, false)
		f.Name = name
		spec.Files = append(spec.Files, f)
	}
	archive := collected(t, local, true)
	archive.Name = "my:venv%"
	spec.Files = append(spec.Files, archive)
	resources, err := upload(t.Context(), home, jobs.Directory("one"), spec, set, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := store.ReadFile(t.Context(), home, jobs.Directory("one")+"/"+proto.SpecFile)
	if err != nil {
		t.Fatal(err)
	}
	stored := &proto.JobSpec{}
	if err := protojson.Unmarshal(text, stored); err != nil {
		t.Fatal(err)
	}
	uris := []string{resources[0].URI}
	for i, f := range stored.Files {
		if f.Name != spec.Files[i].Name {
			t.Errorf("%s is called %s by now", spec.Files[i].Name, f.Name)
		}
		uris = append(uris, f.Uri)
	}
	for _, uri := range uris {
		u, err := url.Parse(uri)
		if err != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%s is %v, %v", uri, u, err)
			continue
		}
		name := strings.TrimPrefix(u.Path, strings.TrimPrefix(home.URI(), "file://")+"/")
		if text, err := store.ReadFile(t.Context(), home, name); err != nil || string(text) != "content" || strings.Contains(name, ":") {
			t.Errorf("at %s is %q, %v", uri, text, err)
		}
	}
	if name := resources[0].Name; name != proto.StoredName(archive.Name) || strings.ContainsAny(name, ":%") {
		t.Errorf("NodeManagers are to call the archive %s", name)
	}
}

// TestWhatChangesDuringAnUpload: it is not brought under the digest that it had before, where later
// jobs would take it for what it was. The job is refused, and told which file.
func TestWhatChangesDuringAnUpload(t *testing.T) {
	for _, archive := range []bool{true, false} {
		file := filepath.Join(t.TempDir(), "venv.tar.gz")
		if err := os.WriteFile(file, []byte("archive"), 0o644); err != nil {
			t.Fatal(err)
		}
		home, err := store.NewLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer home.Close()
		set, err := jobtls.New("j")
		if err != nil {
			t.Fatal(err)
		}
		before := collected(t, file, archive)
		if err := os.WriteFile(file, []byte("another"), 0o644); err != nil {
			t.Fatal(err)
		}
		spec := &proto.JobSpec{Files: []*proto.FileSpec{before}}
		if _, err := upload(t.Context(), home, jobs.Directory("one"), spec, set, nil); err == nil || !strings.Contains(err.Error(), file+" has changed") {
			t.Errorf("an upload of what has changed: %v", err)
		}
		if err := os.WriteFile(file, []byte("archive"), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := upload(t.Context(), home, jobs.Directory("two"), spec, set, nil)
		if err != nil {
			t.Fatal(err)
		}
		if archive {
			text, err := store.ReadFile(t.Context(), home, strings.TrimPrefix(got[0].URI, home.URI()+"/"))
			if err != nil || string(text) != "archive" {
				t.Errorf("a later job gets %q, %v", text, err)
			}
		}
	}
}

// interruptedAt is a store in which a context ends once a file has been uploaded, before it has its name.
type interruptedAt struct {
	store.Store
	cancel context.CancelFunc
}

func (i interruptedAt) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	i.cancel()
	return i.Store.Chtimes(ctx, name, atime, mtime)
}

// TestAnUploadIsInterrupted: by a signal, or as another one has failed. Nothing of it stays, where no
// later job would remove it.
func TestAnUploadIsInterrupted(t *testing.T) {
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	exe := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(exe, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := EnsureBinary(ctx, interruptedAt{home, cancel}, exe); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted upload: %v", err)
	}
	versions, err := home.List(t.Context(), "bin")
	if err != nil || len(versions) != 1 {
		t.Fatalf("there are %v, %v", versions, err)
	}
	if left, err := home.List(t.Context(), "bin/"+versions[0].Name); err != nil || len(left) != 0 {
		t.Errorf("left over are %v, %v", left, err)
	}
}
