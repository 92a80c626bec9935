package kerberos

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
)

// gokrb5 makes a buffer as long as a KDC's answer claims to be, up to 4 GiB, before
// anything of it has come (client/network.go, sendTCP), and the second such buffer is
// cleared, so that it is resident. So gokrb5 connects to relays on the loopback interface, one
// for each KDC and process, which accept no answer longer than answerLimit.
const (
	answerLimit   = 1 << 20 // a ticket with a thousand groups takes 64 KiB (MS-PAC)
	exchangeLimit = 4 * time.Second
	udpPatience   = 1500 * time.Millisecond // then TCP is tried; within exchangeLimit
)

type relay struct {
	kdc      string // host:port
	udpLimit int    // the longest request that is sent by UDP: udp_preference_limit
	address  string // of the relay

	mu    sync.Mutex
	cause error // why there was no answer, the last time
}

var relays struct {
	sync.Mutex
	of map[string]*relay // by KDC and udpLimit
}

// relayTo returns the address of the relay to a KDC. It runs until the process ends.
func relayTo(kdc string, udpLimit int) (string, error) {
	relays.Lock()
	defer relays.Unlock()
	key := fmt.Sprint(kdc, " ", udpLimit)
	if r := relays.of[key]; r != nil {
		return r.address, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen on the loopback for what is said to the KDC %s: %w", kdc, err)
	}
	r := &relay{kdc: kdc, udpLimit: udpLimit, address: l.Addr().String()}
	if relays.of == nil {
		relays.of = map[string]*relay{}
	}
	relays.of[key] = r
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go r.serve(c)
		}
	}()
	return r.address, nil
}

// serve answers one request; if the KDC does not answer, it closes the connection.
func (r *relay) serve(c net.Conn) {
	defer c.Close()
	end := time.Now().Add(exchangeLimit)
	_ = c.SetDeadline(end)
	request, err := readFrame(c)
	if err != nil {
		return // it is nobody of this program
	}
	answer, err := r.exchange(request, end)
	r.mu.Lock()
	r.cause = err
	r.mu.Unlock()
	if err == nil {
		_, _ = c.Write(frame(answer)) // or gokrb5 has given up
	}
}

func (r *relay) exchange(request []byte, end time.Time) (answer []byte, err error) {
	if len(request) <= r.udpLimit && r.udpLimit > 1 {
		var refusal messages.KRBError
		soon := time.Now().Add(udpPatience)
		if answer, err = r.ask("udp", request, soon); err == nil && (refusal.Unmarshal(answer) != nil || refusal.ErrorCode != errorcode.KRB_ERR_RESPONSE_TOO_BIG) {
			return answer, nil
		}
	}
	return r.ask("tcp", request, end)
}

// ask sends a request to the KDC: RFC 4120, section 7.2.
func (r *relay) ask(network string, request []byte, end time.Time) ([]byte, error) {
	c, err := (&net.Dialer{Deadline: end}).Dial(network, r.kdc)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(end)
	if network == "udp" {
		answer := make([]byte, 1<<16)
		if _, err = c.Write(request); err != nil {
			return nil, err
		}
		n, err := c.Read(answer)
		return answer[:n], err
	}
	if _, err = c.Write(frame(request)); err != nil {
		return nil, err
	}
	return readFrame(c)
}

// bounded makes gokrb5 use relays in place of the configured KDCs, and of those of the user's
// realm that are found by DNS. KDCs of another realm that are found by DNS are contacted
// directly.
func bounded(cfg *config.Config, realm string) error {
	known := func(r config.Realm) bool { return r.Realm == realm && len(r.KDC) > 0 }
	if !slices.ContainsFunc(cfg.Realms, known) {
		if _, kdcs, err := cfg.GetKDCs(realm, true); err == nil {
			cfg.Realms = append(cfg.Realms, config.Realm{Realm: realm, KDC: slices.Collect(maps.Values(kdcs))})
		} // or the error comes when it is asked
	}
	for i := range cfg.Realms {
		for j, kdc := range cfg.Realms[i].KDC {
			address, err := relayTo(kdc, cfg.LibDefaults.UDPPreferenceLimit)
			if err != nil {
				return err
			}
			cfg.Realms[i].KDC[j] = address
		}
	}
	cfg.LibDefaults.UDPPreferenceLimit = 1 // a relay listens by TCP
	return nil
}

func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

func readFrame(c io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > answerLimit {
		return nil, fmt.Errorf("it claims an answer of %d bytes, which no KDC gives", n)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(c, message)
	return message, err
}

// relayedCause returns why a relay that gokrb5's error names had no answer; nil: it names none.
func relayedCause(text string) error {
	relays.Lock()
	defer relays.Unlock()
	for _, r := range relays.of {
		if strings.Contains(text, r.address) {
			r.mu.Lock()
			cause := r.cause
			r.mu.Unlock()
			if cause != nil {
				return fmt.Errorf("%s: %w", r.kdc, cause)
			}
		}
	}
	return nil
}
