package kerberos_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"holdfast/internal/hadoop/kerberos"
)

const fakeService = "nn/localhost@" + fakeRealm

// TestDamagedAnswersAreErrors: whatever a KDC, or who is in its place, answers, it is an error of
// the login or of the ticket, and the process goes on.
func TestDamagedAnswersAreErrors(t *testing.T) {
	short := func(k *fakeKDC, r *messages.ASReq) []byte {
		rep := messages.ASRep{KDCRepFields: k.reply(r.ReqBody, r.ReqBody.CName, msgtype.KRB_AS_REP, k.key("alice"), 3)}
		rep.EncPart.Cipher = rep.EncPart.Cipher[:1]
		return k.marshal(&rep)
	}
	for i, x := range []struct {
		name  string
		login func(k *fakeKDC, r *messages.ASReq) []byte
	}{
		{"nothing", func(*fakeKDC, *messages.ASReq) []byte { return nil }},
		{"no message", func(*fakeKDC, *messages.ASReq) []byte { return []byte("HTTP/1.1 400 Bad Request") }},
		{"half of one", func(k *fakeKDC, r *messages.ASReq) []byte { b := k.hint(r.ReqBody, fakeEtype); return b[:len(b)/2] }},
		{"a hint of no types of keys", func(k *fakeKDC, r *messages.ASReq) []byte {
			if len(r.PAData) > 0 {
				return short(k, r)
			}
			return k.hint(r.ReqBody)
		}},
		{"a sealed part of one byte", short},
	} {
		t.Run(x.name, func(t *testing.T) {
			k := newFakeKDC(t)
			k.login = func(r *messages.ASReq) []byte { return x.login(k, r) }
			began := time.Now()
			_, err := kerberos.FromKeys("alice", k.keytab(fmt.Sprint("password ", i)), "a keytab")
			bad(t, began, err, true, "no KDC of the realm FAKE.TEST answers", "its answer is damaged")
		})
	}
	for _, x := range []struct {
		name   string
		damage func(*messages.TGSRep)
	}{
		{"a sealed part of one byte", func(r *messages.TGSRep) { r.EncPart.Cipher = r.EncPart.Cipher[:1] }},
		{"a sealed part of zeros", func(r *messages.TGSRep) { clear(r.EncPart.Cipher) }},
		{"a ticket without a name", func(r *messages.TGSRep) { r.Ticket.SName.NameString = nil }},
	} {
		t.Run("a ticket: "+x.name, func(t *testing.T) {
			k := newFakeKDC(t)
			k.ticket = func(r *messages.TGSReq) []byte {
				rep := k.granted(r)
				x.damage(&rep)
				return k.marshal(&rep)
			}
			u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			began := time.Now()
			_, err = u.Ticket(fakeService)
			bad(t, began, err, true, "get a ticket for "+fakeService, "no KDC of the realm FAKE.TEST answers", "its answer is damaged")
			k.ticket = nil
			if _, err := u.Ticket(fakeService); err != nil {
				t.Errorf("from the same KDC, when its answers are whole: %v", err)
			}
		})
	}
}

// TestTooManyOpenFiles: a process that had no file descriptor left reaches its KDC again as soon
// as it has one, whichever step of an exchange had failed.
func TestTooManyOpenFiles(t *testing.T) {
	k := newFakeKDC(t)
	login := func() error {
		u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
		if err == nil {
			u.Close()
		}
		return err
	}
	if err := login(); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 256
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	failed := 0
	for left := range 4 {
		var files []int
		for {
			f, err := syscall.Dup(0)
			if err != nil {
				break
			}
			files = append(files, f)
		}
		for _, f := range files[:left] {
			syscall.Close(f)
		}
		if err := login(); err != nil {
			failed++
		}
		for _, f := range files[left:] {
			syscall.Close(f)
		}
	}
	if failed == 0 {
		t.Error("no login failed without descriptors: nothing was tried")
	}
	err := login()
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); {
		err = login()
	}
	if err != nil {
		t.Errorf("with descriptors again: %v", err)
	}
}

// TestNothingRunsBetweenRequests: tickets are replaced when one is asked for, and by nobody else.
// A login from a keytab, and a ticket, leave no goroutine behind, which could only end the process
// when its KDC answers badly, and repeats what the KDC has refused.
func TestNothingRunsBetweenRequests(t *testing.T) {
	k := newFakeKDC(t)
	u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := u.Ticket(fakeService); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(all.String(), "gokrb5/v8/client") {
		t.Errorf("gokrb5 goes on by itself:\n%s", all.String())
	}
}

// TestRefusedLoginsAreNotRepeated: a wrong key is shown once, not again and again until the account
// is locked, and the error says when it is tried next.
func TestRefusedLoginsAreNotRepeated(t *testing.T) {
	k := newFakeKDC(t)
	wrong := k.keytab("another secret")
	for range 20 {
		began := time.Now()
		_, err := kerberos.FromKeys("alice", wrong, "a keytab")
		bad(t, began, err, false, "the key is wrong", "not tried again before")
		until, refused := kerberos.RefusedUntil(err)
		if !refused || until.Before(began.Add(time.Minute)) || until.After(time.Now().Add(time.Hour)) {
			t.Errorf("it is tried again at %v, %v: %v", until, refused, err)
		}
	}
	if n := k.proofs.Load(); n != 1 {
		t.Errorf("the KDC was shown the wrong key %d times", n)
	}
	u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a new keytab")
	if err != nil {
		t.Fatalf("a new keytab has to wait for the old one: %v", err)
	}
	u.Close()
}

// TestAUserWhoseKeyHasChanged: the same holds for who has been logged in, and asks for tickets when
// the last ticket-granting ticket has ended.
func TestAUserWhoseKeyHasChanged(t *testing.T) {
	k := newFakeKDC(t)
	k.life = time.Nanosecond
	u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := u.Ticket(fakeService); err != nil {
		t.Fatal(err)
	}
	k.login = func(r *messages.ASReq) []byte {
		if !r.PAData.Contains(patype.PA_ENC_TIMESTAMP) {
			return k.hint(r.ReqBody, fakeEtype)
		}
		return k.refuse(r.ReqBody, errorcode.KDC_ERR_PREAUTH_FAILED, nil)
	}
	before := k.proofs.Load()
	for range 20 {
		began := time.Now()
		_, err := u.Ticket(fakeService)
		bad(t, began, err, false, "the key is wrong", "not tried again before")
	}
	if n := k.proofs.Load() - before; n != 1 {
		t.Errorf("the KDC was shown the wrong key %d times", n)
	}
}

// TestWhenAUserLogsInAnew: a login with the keytab follows the refusal of the ticket by which others
// are asked for, and no other refusal, and it does not follow again and again where it is of no use.
func TestWhenAUserLogsInAnew(t *testing.T) {
	for code, logins := range map[int32]int32{
		errorcode.KDC_ERR_TGT_REVOKED:         1,
		errorcode.KRB_AP_ERR_BAD_INTEGRITY:    1,
		errorcode.KRB_AP_ERR_TKT_EXPIRED:      1,
		errorcode.KRB_AP_ERR_MODIFIED:         1,
		errorcode.KRB_AP_ERR_BADKEYVER:        1,
		errorcode.KRB_AP_ERR_NOKEY:            1,
		errorcode.KRB_ERR_GENERIC:             1,
		errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN: 0,
		errorcode.KDC_ERR_POLICY:              0,
		errorcode.KDC_ERR_ETYPE_NOSUPP:        0,
		errorcode.KRB_AP_ERR_SKEW:             0,
	} {
		t.Run(errorcode.Lookup(code), func(t *testing.T) {
			k := newFakeKDC(t)
			var always atomic.Bool
			k.ticket = func(r *messages.TGSReq) []byte {
				if always.Load() || k.proofs.Load() == 1 {
					return k.refuse(r.ReqBody, code, nil)
				}
				return k.grant(r)
			}
			u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			if _, err := u.Ticket(fakeService); (err == nil) != (logins > 0) {
				t.Error(err)
			}
			always.Store(true)
			for range 20 {
				began := time.Now()
				_, err := u.Ticket("http/localhost@" + fakeRealm)
				bad(t, began, err, false, "get a ticket for http/localhost@"+fakeRealm)
			}
			if n := k.proofs.Load() - 1; n != logins {
				t.Errorf("%d logins", n)
			}
		})
	}
}

// TestTicketsOfAllTypesAreAskedFor: which types of keys a keytab has says nothing of those that
// services have.
func TestTicketsOfAllTypesAreAskedFor(t *testing.T) {
	k := newFakeKDC(t)
	var asked []int32
	k.ticket = func(r *messages.TGSReq) []byte {
		asked = r.ReqBody.EType
		return k.grant(r)
	}
	u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := u.Ticket(fakeService); err != nil {
		t.Fatal(err)
	}
	want := []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.AES128_CTS_HMAC_SHA256_128}
	slices.Sort(want)
	slices.Sort(asked)
	if !slices.Equal(asked, want) {
		t.Errorf("tickets of the types %v are asked for, want %v", asked, want)
	}
}

// TestARefusedTicketIsKept: while there is no other one, a refused ticket is what the user has: the
// refusal may have been of something else.
func TestARefusedTicketIsKept(t *testing.T) {
	k, busy := newSwitchedKDC(t)
	u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for range 2 {
		got, err := u.Ticket(fakeService)
		if err != nil {
			t.Fatal(err)
		}
		busy.Store(true)
		if u.Refused(fakeService, got) {
			t.Error("there is another ticket of a KDC that gives none")
		}
	}
	if _, err := u.Ticket(fakeService); err != nil {
		t.Error(err)
	}
}

// TestTheNewestKeyIsUsed: of several keys of one type in a keytab, the one with the newest version
// is used, whenever and in whatever order they were written (ktpass writes no times, ktutil puts
// files together), and whatever version the KDC says that it has.
func TestTheNewestKeyIsUsed(t *testing.T) {
	type key struct {
		version  uint8
		written  int64
		password string
	}
	const right, wrong = "secret of alice", "an old secret"
	for _, x := range []struct {
		name string
		keys []key
	}{
		{"without times", []key{{2, 0, wrong}, {3, 0, right}}},
		{"without times, the newest first", []key{{3, 0, right}, {2, 0, wrong}}},
		{"the older one was added later", []key{{3, 1000, right}, {2, 2000, wrong}}},
		{"one version, written twice", []key{{1, 1000, wrong}, {1, 2000, right}}},
		{"the versions have begun anew", []key{{255, 1000, wrong}, {1, 2000, right}}},
		{"the versions have begun anew, and it is first", []key{{1, 2000, right}, {255, 1000, wrong}}},
		{"another version than the KDC's", []key{{7, 1000, right}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			newFakeKDC(t)
			keys := keytab.New()
			for _, y := range x.keys {
				if err := keys.AddEntry("alice", fakeRealm, y.password, time.Unix(y.written, 0), y.version, fakeEtype); err != nil {
					t.Fatal(err)
				}
			}
			b, err := keys.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			u, err := kerberos.FromKeys("alice", b, "a keytab")
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			if _, err := u.Ticket(fakeService); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRealmsOnTheWay: a service is reached through as many realms as there are between it and its
// user, as in a forest of Active Directory, where the way from a domain to another leads by its
// root: to each realm's KDC the user is one of the first realm's.
func TestRealmsOnTheWay(t *testing.T) {
	const root, other = "ROOT.TEST", "OTHER.TEST"
	k := newFakeKDC(t)
	for name, realm := range map[string]string{"krbtgt/" + root: fakeRealm, "krbtgt/" + other: root, "nn/localhost": other} {
		k.knows(name, realm)
	}
	refers := map[string]string{fakeRealm: root, root: other}
	k.ticket = func(r *messages.TGSReq) []byte {
		if next := refers[r.ReqBody.Realm]; next != "" {
			r.ReqBody.SName = types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "krbtgt/"+next)
		}
		return k.grant(r)
	}
	text := "[libdefaults]\ndefault_realm = " + fakeRealm + "\nudp_preference_limit = 1\ndns_lookup_kdc = false\n[realms]\n"
	for _, realm := range []string{fakeRealm, root, other} {
		text += realm + " = {\nkdc = " + k.address + "\n}\n"
	}
	conf := filepath.Join(t.TempDir(), "krb5.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(kerberos.EnvConfig, conf)
	for _, service := range []string{"nn/localhost@" + other, "nn/localhost"} {
		u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
		if err != nil {
			t.Fatal(err)
		}
		got, err := u.Ticket(service)
		if err != nil || got.Ticket.Realm != other || got.Realm != fakeRealm {
			t.Errorf("%s: a ticket of %q for a user of %q: %v", service, got.Ticket.Realm, got.Realm, err)
		}
		u.Close()
	}
}

// TestAKDCThatIsNotReady: another KDC is asked in the place of one that answers that it cannot serve
// now (KDC_ERR_SVC_UNAVAILABLE, as a domain controller that starts), and where there is none, that
// is no refusal: nothing has to wait because of it.
func TestAKDCThatIsNotReady(t *testing.T) {
	first, firstBusy := newSwitchedKDC(t)
	keys := first.keytab("secret of alice")
	firstBusy.Store(true)
	for range 2 {
		asked := first.logins.Load()
		began := time.Now()
		_, err := kerberos.FromKeys("alice", keys, "a keytab")
		bad(t, began, err, true, "no KDC of the realm FAKE.TEST answers", "KDC_ERR_SVC_UNAVAILABLE")
		if _, refused := kerberos.RefusedUntil(err); refused || first.logins.Load() == asked {
			t.Errorf("it was not asked, or will not be: %v", err)
		}
	}
	second, secondBusy := newSwitchedKDC(t)
	configure(t, first.address, second.address)
	for range 8 {
		firstBusy.Store(!firstBusy.Load())
		secondBusy.Store(!firstBusy.Load())
		u, err := kerberos.FromKeys("alice", keys, "a keytab")
		if err != nil {
			t.Fatal(err)
		}
		firstBusy.Store(!firstBusy.Load())
		secondBusy.Store(!firstBusy.Load())
		if _, err := u.Ticket(fakeService); err != nil {
			t.Fatal(err)
		}
		u.Close()
	}
}

// TestTheKDCThatServesIsAskedFirst: of several KDCs, of which others cannot be reached or cannot serve,
// the one that has served last is asked first: the others cost no more than one wait.
func TestTheKDCThatServesIsAskedFirst(t *testing.T) {
	down, busy := newSwitchedKDC(t)
	busy.Store(true)
	up := newFakeKDC(t)
	configure(t, down.address, up.address)
	for range 12 {
		u, err := kerberos.FromKeys("alice", up.keytab("secret of alice"), "a keytab")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Ticket(fakeService); err != nil {
			t.Fatal(err)
		}
		u.Close()
	}
	if n := down.logins.Load() + down.tickets.Load(); n > 1 {
		t.Errorf("the other KDC was asked %d times", n)
	}
}

// peak is the largest resident memory that this process has had, in MB: proc_pid_status(5).
func peak(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

// A KDC that claims answers of up to 4 GiB takes neither memory nor patience, whatever
// comes then, also when it is asked again: gokrb5's second buffer is cleared, and so resident.
func TestAnswersOfKDCsAreBounded(t *testing.T) {
	k := keytab.New()
	if err := k.AddEntry("alice", "HUGE.TEST", "secret", time.Now(), 1, etypeID.AES256_CTS_HMAC_SHA1_96); err != nil {
		t.Fatal(err)
	}
	keys, err := k.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name  string
		claim uint32
		then  func(net.Conn, []byte) error // until it fails
		pause time.Duration
		says  string
	}{
		{"silence", 1<<32 - 1, func(c net.Conn, b []byte) error { _, err := c.Read(b); return err }, 0, "claims an answer of 4294967295 bytes"},
		{"a flood", 1<<32 - 1, func(c net.Conn, b []byte) error { _, err := c.Write(b); return err }, 0, "claims an answer of 4294967295 bytes"},
		{"a trickle", 1 << 16, func(c net.Conn, b []byte) error { _, err := c.Write(b[:1]); return err }, 10 * time.Millisecond, "i/o timeout"},
	} {
		t.Run(x.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					go func() {
						defer c.Close()
						b := make([]byte, 1<<16)
						_, err := c.Read(b)
						if err == nil {
							_, err = c.Write(binary.BigEndian.AppendUint32(nil, x.claim))
						}
						for ; err == nil; time.Sleep(x.pause) {
							err = x.then(c, b)
						}
					}()
				}
			}()
			conf := filepath.Join(t.TempDir(), "krb5.conf")
			if err := os.WriteFile(conf, fmt.Appendf(nil, "[libdefaults]\ndefault_realm = HUGE.TEST\n[realms]\nHUGE.TEST = {\nkdc = %s\n}\n", l.Addr()), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv(kerberos.EnvConfig, conf)
			before := peak(t)
			for range 2 {
				began := time.Now()
				_, err := kerberos.FromKeys("alice", keys, "a keytab")
				bad(t, began, err, true, "no KDC of the realm HUGE.TEST answers", x.says)
				runtime.GC()
			}
			if grown := peak(t) - before; grown > 32 {
				t.Errorf("it took %d MB", grown)
			}
		})
	}
}

// TestWhoWaitsForASilentKDC: while a KDC is asked that does not answer, tickets that the user has are
// there for others, and all who want the same new one wait for one answer, not one after the other
// for an answer each.
func TestWhoWaitsForASilentKDC(t *testing.T) {
	k := newFakeKDC(t)
	u, err := kerberos.FromKeys("alice", k.keytab("secret of alice"), "a keytab")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := u.Ticket(fakeService); err != nil {
		t.Fatal(err)
	}
	asked, over := make(chan bool, 100), make(chan bool)
	defer close(over)
	k.ticket = func(*messages.TGSReq) []byte {
		asked <- true
		<-over
		return nil
	}
	before := k.tickets.Load()
	const many = 4
	answers := make(chan error, many)
	for range many {
		go func() {
			_, err := u.Ticket("http/localhost@" + fakeRealm)
			answers <- err
		}()
	}
	<-asked
	if _, err := u.Ticket(fakeService); err != nil {
		t.Error(err)
	}
	if len(answers) > 0 {
		t.Error("a ticket that the user has was not there before the KDC was given up")
	}
	for range many {
		if err := <-answers; !kerberos.Unreachable(err) {
			t.Errorf("the KDC has not answered: %v", err)
		}
	}
	if n := k.tickets.Load() - before; n >= many {
		t.Errorf("the KDC was asked %d times", n)
	}
}
