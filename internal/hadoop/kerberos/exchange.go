package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"

	"holdfast/internal/hadoop/sasl"
)

// Limits of an exchange with one KDC. gokrb5's own (client/network.go) takes as much memory as an
// answer claims to be long, up to 4 GiB, before anything of it has come.
const (
	answerLimit   = 1 << 20 // a ticket with a thousand groups takes 64 KiB (MS-PAC)
	exchangeLimit = 4 * time.Second
	udpPatience   = 1500 * time.Millisecond // then TCP is tried; within exchangeLimit
)

// errDamagedAnswer is an answer that no KDC gives. Another KDC may give a better one.
var errDamagedAnswer = errors.New("its answer is damaged")

// unanswered is that no KDC of a realm has given an answer that can be used.
type unanswered struct{ causes []string }

func (u *unanswered) Error() string { return strings.Join(u.causes, "; ") }

// errNoKDC is that there is no KDC to ask.
var errNoKDC = errors.New("no KDC is known")

// exchange sends a request to the KDCs of a realm, one after the other, until read takes an
// answer. It returns read's error, such as the KDC's refusal, if another KDC would say the same.
func exchange(cfg *config.Config, realm string, request []byte, read func(answer []byte) error) error {
	n, kdcs, err := cfg.GetKDCs(realm, true)
	var dns *net.DNSError
	if errors.As(err, &dns) && !dns.IsNotFound {
		return &unanswered{[]string{err.Error()}}
	}
	if err != nil || n == 0 {
		return errNoKDC
	}
	var failed unanswered
	for _, kdc := range inOrder(realm, kdcs) {
		answer, err := ask(kdc, request, cfg.LibDefaults.UDPPreferenceLimit)
		if err == nil {
			if err = read(answer); !ownFault(err) {
				if err == nil || demandsProof(err) {
					served.Store(realm, kdc)
				} else {
					served.Delete(realm) // another one may know what this one does not know yet
				}
				return err
			}
		}
		failed.causes = append(failed.causes, fmt.Sprintf("%s: %s", kdc, oneLine(err.Error())))
	}
	return &failed
}

// served has for each realm the KDC that has served last. It is the process's, as refusals are.
var served sync.Map

// inOrder returns the addresses of a realm's KDCs, which gokrb5 has mixed and counts from 1. The
// one that has served last is the first: one that cannot be reached is not waited for each time.
func inOrder(realm string, kdcs map[int]string) []string {
	var list []string
	for i := 1; i <= len(kdcs); i++ {
		list = append(list, kdcs[i])
	}
	if last, ok := served.Load(realm); ok {
		if i := slices.Index(list, last.(string)); i > 0 {
			list = slices.Insert(slices.Delete(list, i, i+1), 0, last.(string))
		}
	}
	return list
}

// demandsProof reports whether a KDC has answered a login with the demand for a proof of the key.
func demandsProof(err error) bool {
	var hint messages.KRBError
	return errors.As(err, &hint) && hint.ErrorCode == errorcode.KDC_ERR_PREAUTH_REQUIRED
}

// ownFault reports whether an error says nothing but that this KDC cannot serve.
func ownFault(err error) bool {
	var refusal messages.KRBError
	return errors.Is(err, errDamagedAnswer) || errors.As(err, &refusal) && refusal.ErrorCode == errorcode.KDC_ERR_SVC_UNAVAILABLE
}

// parse reads a KDC's answer. The KDC's refusal is a messages.KRBError.
func parse(answer []byte, into interface{ Unmarshal([]byte) error }) error {
	return whole(func() error {
		var refusal messages.KRBError
		if refusal.Unmarshal(answer) == nil {
			return refusal
		}
		if into.Unmarshal(answer) != nil {
			return errDamagedAnswer
		}
		return nil
	})
}

// whole is sasl.Guard for what reads a KDC's answer.
func whole(f func() error) error {
	err := sasl.Guard(f)
	if errors.Is(err, sasl.ErrMalformed) {
		return errDamagedAnswer
	}
	return err
}

// ask asks one KDC: first by UDP, unless the request is longer than udp_preference_limit.
func ask(kdc string, request []byte, udpLimit int) (answer []byte, err error) {
	end := time.Now().Add(exchangeLimit)
	if len(request) <= udpLimit && udpLimit > 1 {
		if answer, err = send("udp", kdc, request, time.Now().Add(udpPatience)); err == nil && !tooLong(answer) {
			return answer, nil
		}
	}
	return send("tcp", kdc, request, end)
}

// tooLong reports whether a KDC says that its answer does not fit into a datagram.
func tooLong(answer []byte) bool {
	var refusal messages.KRBError
	err := sasl.Guard(func() error { return refusal.Unmarshal(answer) })
	return err == nil && refusal.ErrorCode == errorcode.KRB_ERR_RESPONSE_TOO_BIG
}

// send sends a request to a KDC and returns the answer: RFC 4120, section 7.2.
func send(network, kdc string, request []byte, end time.Time) ([]byte, error) {
	c, err := (&net.Dialer{Deadline: end}).Dial(network, kdc)
	if err != nil {
		return nil, dialed(err)
	}
	defer c.Close()
	_ = c.SetDeadline(end)
	if network == "udp" {
		answer := make([]byte, 1<<16)
		if _, err = c.Write(request); err != nil {
			return nil, dialed(err)
		}
		n, err := c.Read(answer)
		return answer[:n], dialed(err)
	}
	if _, err = c.Write(frame(request)); err != nil {
		return nil, dialed(err)
	}
	answer, err := readFrame(c)
	return answer, dialed(err)
}

// dialed returns the system's part of a network's error: the address is named beside it.
func dialed(err error) error {
	var operation *net.OpError
	if errors.As(err, &operation) {
		return operation.Err
	}
	return err
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
