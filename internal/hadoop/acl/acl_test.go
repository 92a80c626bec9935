package acl_test

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/hadoop/acl"
	"holdfast/internal/hadoop/conf"
)

func TestAllows(t *testing.T) {
	groups := func(user string) []string {
		return map[string][]string{"carol": {"staff", "users"}}[user]
	}
	for _, c := range []struct {
		list    string
		in, out []string
	}{
		{"", nil, []string{"alice", "carol", ""}},
		{" ", nil, []string{"alice", "carol", ""}},
		{"*", []string{"alice", "anybody"}, nil},
		{" * ", []string{"alice"}, nil},
		{"alice", []string{"alice"}, []string{"carol", "alic", ""}},
		{"alice,bob", []string{"alice", "bob"}, []string{"carol"}},
		{"alice staff", []string{"alice", "carol"}, []string{"bob", "staff"}},
		{" staff,other", []string{"carol"}, []string{"alice", "staff"}},
		{"\n  staff\n", []string{"carol"}, []string{"alice", "staff"}}, // as XML is indented
		{"alice,bob\n", []string{"alice", "bob"}, []string{"carol"}},
	} {
		l, err := acl.Parse(c.list)
		if err != nil {
			t.Errorf("%q: %v", c.list, err)
		}
		for _, u := range c.in {
			if !l.Allows(u, groups) {
				t.Errorf("%q does not let %q in", c.list, u)
			}
		}
		for _, u := range c.out {
			if l.Allows(u, groups) {
				t.Errorf("%q lets %q in", c.list, u)
			}
		}
	}
	for _, bad := range []string{"alice,", ",", "alice, bob staff", "alice a,,b", "a b c"} {
		if l, err := acl.Parse(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, l)
		}
	}
}

func TestGroups(t *testing.T) {
	g := acl.NewGroups(conf.New(map[string]string{"hadoop.user.group.static.mapping.overrides": "alice=staff,admins;bob=;"}))
	if got := g.Of("alice"); !slices.Equal(got, []string{"staff", "admins"}) {
		t.Errorf("alice is in %q", got)
	}
	for _, nobody := range []string{"bob", "no-such-user", "--help"} {
		if got := g.Of(nobody); len(got) != 0 {
			t.Errorf("%s is in %q", nobody, got)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := user.LookupGroupId(me.Gid)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Of(me.Username); !slices.Contains(got, mine.Name) {
		t.Errorf("%s is in %q, without %s", me.Username, got, mine.Name)
	}
}

// TestWhoHasLeftAGroup: what was found out is asked again after Hadoop's time for it, and who has
// left a group then, or cannot be looked up, has its rights no longer.
func TestWhoHasLeftAGroup(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	answer := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "id"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		name, configured string
		lasts            time.Duration
		then             string // of id
		after            []string
	}{
		{"another group", "", 5 * time.Minute, "echo users", []string{"users"}},
		{"no such user", "", 5 * time.Minute, "echo no such user >&2; exit 1", nil},
		{"id is killed", "", 5 * time.Minute, "kill -9 $$", nil},
		{"another time", "40", 40 * time.Second, "echo users", []string{"users"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				properties := map[string]string{}
				if x.configured != "" {
					properties["hadoop.security.groups.cache.secs"] = x.configured
				}
				g := acl.NewGroups(conf.New(properties))
				answer("echo staff admins")
				before := g.Of("carol")
				answer(x.then)
				time.Sleep(x.lasts - time.Second)
				remembered := g.Of("carol")
				time.Sleep(2 * time.Second)
				after := g.Of("carol")
				if want := []string{"staff", "admins"}; !slices.Equal(before, want) || !slices.Equal(remembered, want) || !slices.Equal(after, x.after) {
					t.Errorf("she is in %q, before the time is over in %q, then in %q", before, remembered, after)
				}
				answer("echo staff")
				time.Sleep(x.lasts + time.Second)
				if again := g.Of("carol"); !slices.Equal(again, []string{"staff"}) {
					t.Errorf("when she is back, she is in %q", again)
				}
			})
		})
	}
}

// TestAGroupWithoutAName: of a group without a name, id prints the number, and fails when it has
// printed the others: who is in them is in them. The number is nobody's name.
func TestAGroupWithoutAName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, x := range []struct {
		id   string
		want []string
	}{
		{"echo users 98765 admins; echo id: cannot find name for group ID 98765 >&2; exit 1", []string{"users", "admins"}},
		{"echo users 98765", []string{"users", "98765"}}, // that is its name
		{"echo users adm; kill -9 $$", nil},
		{"echo no such user >&2; exit 1", nil},
	} {
		if err := os.WriteFile(filepath.Join(dir, "id"), []byte("#!/bin/sh\n"+x.id+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := acl.NewGroups(conf.New(nil)).Of("carol"); !slices.Equal(got, x.want) {
			t.Errorf("%s: she is in %q", x.id, got)
		}
	}
}
