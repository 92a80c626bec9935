package login_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/login"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// TestAProcessStaysWhoItIs: a process that has begun with alice's tickets goes on with hers alone.
// That somebody else's are in the cache when hers have ended makes it nobody else.
func TestAProcessStaysWhoItIs(t *testing.T) {
	k := testcluster.ForTest(t, testcluster.Options{KDCOnly: true}).KDC()
	cache := filepath.Join(t.TempDir(), "cache")
	t.Setenv(kerberos.EnvConfig, k.Config())
	t.Setenv(kerberos.EnvCache, cache)
	kinit := func(user string, options ...string) {
		t.Helper()
		if err := k.Kinit(t.Context(), user, cache, options...); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(login.Forget)
	deadline := time.Now().Add(2 * time.Minute)
	var u *kerberos.User
	for u == nil { // on a slow machine, the ticket may have ended before it is read
		kinit(kdc.Alice, "-l", "2s")
		var err error
		if u, err = login.User(); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for !u.Expired() {
		if time.Now().After(deadline) {
			t.Fatal("the ticket does not end")
		}
		time.Sleep(20 * time.Millisecond)
	}
	kinit(kdc.Bob)
	for range 2 {
		other, err := login.User()
		if err == nil {
			t.Fatalf("the process has become %s", other.Principal())
		}
		for _, word := range []string{"alice@" + kdc.Realm, "bob@" + kdc.Realm, cache, "run kinit alice@" + kdc.Realm} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q is not in: %v", word, err)
			}
		}
		if !kerberos.IsDenied(err) {
			t.Errorf("it is not that a ticket is missing: %v", err)
		}
	}
	kinit(kdc.Alice)
	if u, err := login.User(); err != nil || u.Principal() != "alice@"+kdc.Realm {
		t.Errorf("with tickets of alice again: %v", err)
	}
}
