package kerberos_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"holdfast/internal/hadoop/kerberos"
)

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
