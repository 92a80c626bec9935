package kerberos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"time"
)

// The protocol of daemons that keep ticket caches (sssd-kcm, heimdal-kcm), from
// src/include/kcm.h and src/lib/krb5/ccache/cc_kcm.c of MIT krb5. A request is
// its length (4 bytes, big-endian), version, operation (2 bytes) and parameters;
// an answer the length of what follows the next field, a code, the code of the
// operation, and what was asked for. Names end with a zero byte; principals and
// credentials are as in a cache file of version 4.
const (
	kcmDefaultSocket = "/var/run/.heim_org.h5l.kcm-socket"
	kcmMajor         = 2
	kcmMinor         = 0

	kcmGetPrincipal      = 8  // name -> principal
	kcmGetCredentialList = 9  // name -> UUIDs
	kcmGetCredential     = 10 // name, UUID -> credential
	kcmGetDefault        = 20 // -> name

	kcmUUID     = 16
	kcmLimit    = 10 << 20 // of an answer
	kcmPatience = 10 * time.Second
)

// Codes of no such cache: KRB5_FCC_NOFILE, and KRB5_CC_END of Heimdal.
const (
	noSuchCache int32 = -1765328189
	endOfCaches int32 = -1765328242
)

// kcm is a connection to such a daemon.
type kcm struct{ conn net.Conn }

// readKCM reads a cache from a daemon, and returns it in the form of a file. Without a name it
// reads the default cache of this process's user.
func readKCM(socket, name string) ([]byte, error) {
	conn, err := net.DialTimeout("unix", socket, kcmPatience)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no daemon that keeps ticket caches (sssd-kcm) answers at %s", socket)
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(kcmPatience)); err != nil {
		return nil, err
	}
	k := kcm{conn}
	if name == "" {
		answer, err := k.call(kcmGetDefault, nil)
		if err != nil {
			return nil, err
		}
		text, _, _ := bytes.Cut(answer, []byte{0})
		name = string(text)
	}
	cache := append([]byte(name), 0)
	principal, err := k.call(kcmGetPrincipal, cache)
	if err != nil {
		return nil, err
	}
	if len(principal) == 0 { // Heimdal's, of a cache that it does not have
		return nil, fs.ErrNotExist
	}
	ids, err := k.call(kcmGetCredentialList, cache)
	if err != nil {
		return nil, err
	}
	file := append([]byte{5, 4, 0, 0}, principal...) // version 4, no header
	for ; len(ids) >= kcmUUID; ids = ids[kcmUUID:] {
		credential, err := k.call(kcmGetCredential, append(bytes.Clone(cache), ids[:kcmUUID]...))
		if err != nil {
			return nil, err
		}
		file = append(file, credential...)
	}
	return file, nil
}

func (k kcm) call(op uint16, parameters []byte) ([]byte, error) {
	request := binary.BigEndian.AppendUint32(nil, uint32(4+len(parameters)))
	request = append(request, kcmMajor, kcmMinor)
	request = binary.BigEndian.AppendUint16(request, op)
	if _, err := k.conn.Write(append(request, parameters...)); err != nil {
		return nil, err
	}
	var head struct {
		Length uint32
		Code   int32
	}
	if err := binary.Read(k.conn, binary.BigEndian, &head); err != nil {
		return nil, err
	}
	if head.Length > kcmLimit {
		return nil, fmt.Errorf("the daemon's answer has %d bytes, which cannot be", head.Length)
	}
	answer := make([]byte, head.Length)
	if _, err := io.ReadFull(k.conn, answer); err != nil {
		return nil, err
	}
	code := head.Code
	if code == 0 {
		if len(answer) < 4 {
			return nil, errors.New("the daemon's answer is too short")
		}
		code, answer = int32(binary.BigEndian.Uint32(answer)), answer[4:]
	}
	switch code {
	case 0:
		return answer, nil
	case noSuchCache, endOfCaches:
		return nil, fs.ErrNotExist
	}
	return nil, fmt.Errorf("the daemon answers with the error %d", code)
}
