package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What sock_diag(7) is asked for, and where it has what (linux/inet_diag.h).
const (
	withInfo = 1 << (2 - 1) // INET_DIAG_INFO
	infoType = 2

	// States of a socket that has had a connection and still belongs to a process: ESTABLISHED,
	// FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK and CLOSING (include/net/tcp_states.h).
	connected = 1<<1 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11

	cookieOffset = 44 // of struct inet_diag_msg
	inodeOffset  = 68
	messageSize  = 72
)

// request is struct inet_diag_req_v2: all connections of a family.
type request struct{ family uint8 }

var _ nl.NetlinkRequestData = request{}

func (request) Len() int { return 56 }

func (r request) Serialize() []byte {
	b := make([]byte, r.Len())
	b[0], b[1], b[2] = r.family, unix.IPPROTO_TCP, withInfo
	binary.NativeEndian.PutUint32(b[4:], connected)
	return b
}

// list calls f with each socket of a family in the network namespace of this process. It may
// leave some out that change meanwhile.
func list(family uint8, f func(socket)) error {
	r := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	r.AddData(request{family})
	err := r.ExecuteIter(unix.NETLINK_SOCK_DIAG, nl.SOCK_DIAG_BY_FAMILY, func(m []byte) bool {
		if k, ok := parse(m); ok {
			f(k)
		}
		return true
	})
	if err != nil && !errors.Is(err, nl.ErrDumpInterrupted) {
		return fmt.Errorf("listing TCP sockets: %w", err)
	}
	return nil
}

// parse parses an answer; ok is false for one without counts, as of a kernel before 4.1.
func parse(m []byte) (k socket, ok bool) {
	const (
		acked    = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked))
		received = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_received))
	)
	if len(m) < messageSize {
		return socket{}, false
	}
	k.cookie, k.inode = binary.NativeEndian.Uint64(m[cookieOffset:]), binary.NativeEndian.Uint32(m[inodeOffset:])
	for a := m[messageSize:]; len(a) >= unix.SizeofRtAttr; {
		size, kind := int(binary.NativeEndian.Uint16(a)), binary.NativeEndian.Uint16(a[2:])
		if size < unix.SizeofRtAttr || size > len(a) {
			return socket{}, false
		}
		if info := a[unix.SizeofRtAttr:size]; kind == infoType && len(info) >= received+8 {
			k.sent, k.received = int64(binary.NativeEndian.Uint64(info[acked:])), int64(binary.NativeEndian.Uint64(info[received:]))
			return k, true
		}
		a = a[min(len(a), (size+3)&^3):]
	}
	return socket{}, false
}
