package area_test

import (
	"io"
	"path"
	"slices"
	"testing"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/mount/area"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// TestADirectoryThatIsAboutToBeWrittenTo stays, however old it is, and so does one with a file
// in it.
func TestADirectoryThatIsAboutToBeWrittenTo(t *testing.T) {
	former := area.StageLife
	area.StageLife = 0
	t.Cleanup(func() { area.StageLife = former })
	s, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := logrus.New()
	log.SetOutput(io.Discard)
	a := area.New(s, "job.container", logrus.NewEntry(log))
	stage := func(target string) (string, func()) {
		t.Helper()
		if err := s.Mkdir(t.Context(), target, 0o755); err != nil {
			t.Fatal(err)
		}
		dir, release, err := a.For(t.Context(), target, "what "+target+" passes on")
		if err != nil {
			t.Fatal(err)
		}
		return dir, release
	}
	is := func(want ...string) {
		t.Helper()
		found, err := s.List(t.Context(), writers.Dir("job.container"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range found {
			got = append(got, i.Name)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
	first, release := stage("first")
	second, releaseSecond := stage("second")
	is(path.Base(first), path.Base(second))
	w, err := s.Stage(t.Context(), path.Join(first, "file"), 0o600)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatalf("making a file in what was handed out for it: %v", err)
	}
	release()
	releaseSecond()
	third, releaseThird := stage("third")
	is(path.Base(first), path.Base(third))
	if err := s.Rename(t.Context(), path.Join(first, "file"), "first/file"); err != nil {
		t.Fatal(err)
	}
	fourth, releaseFourth := stage("fourth")
	is(path.Base(third), path.Base(fourth))
	releaseThird()
	releaseFourth()
	a.Remove()
	if left, err := writers.List(t.Context(), s); err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}
