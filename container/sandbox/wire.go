package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The verbs of message.Op. See the package comment.
const (
	opUp      = "up"      // init process: what it may do; with the steering descriptor
	opFuse    = "fuse"    // agent: mount FUSE on Target; answered with the descriptor
	opStat    = "stat"    // agent: look at Target
	opBind    = "bind"    // agent: bind Source over Target
	opExec    = "exec"    // agent: run Argv; with its output descriptor, and maybe one more
	opAdopt   = "adopt"   // agent: tell of the end of the orphan Pid
	opGuard   = "guard"   // agent: hold the descriptor, which guards the process group Pid
	opUnguard = "unguard" // agent: close that of the group Pid
	opRemoved = "removed" // init process: the mount on Target is gone, and all that used it
	opAnswer  = "answer"  // init process: to fuse, stat, bind, exec, adopt
	opExit    = "exit"    // init process: the process Pid ended with Status
)

// message is one message between agent and init process, either way.
type message struct {
	Op      string   `json:"op"`
	Argv    []string `json:"argv,omitempty"`
	Env     []string `json:"env,omitempty"`
	Dir     string   `json:"dir,omitempty"`
	Source  string   `json:"source,omitempty"`
	Target  string   `json:"target,omitempty"`
	Options string   `json:"options,omitempty"`
	Pid     int      `json:"pid,omitempty"`
	Status  uint32   `json:"status,omitempty"`
	// What failed, and with which errno where there is one.
	Error string `json:"error,omitempty"`
	Errno int    `json:"errno,omitempty"`
	// opUp: why not, empty if it may.
	Namespace string `json:"namespace,omitempty"`
	Fuse      string `json:"fuse,omitempty"`
	Steer     string `json:"steer,omitempty"`
	Sample    uint64 `json:"sample,omitempty"` // for steer.Check
}

// failure turns the error of an answer back into one.
func (m message) failure() error {
	if m.Error == "" {
		return nil
	}
	return &remoteError{text: m.Error, errno: syscall.Errno(m.Errno)}
}

func (m message) withError(err error) message {
	if err == nil {
		return m
	}
	m.Error = err.Error()
	var e syscall.Errno
	if errors.As(err, &e) {
		m.Errno = int(e)
	}
	return m
}

type remoteError struct {
	text  string
	errno syscall.Errno
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// maxMessage bounds what is read; command and environment are at most a few
// megabytes (execve(2) allows no more).
const maxMessage = 16 << 20

// send writes a message: its length, four bytes, which carry the descriptors,
// then JSON.
func send(c *net.UnixConn, m message, fds ...int) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, _, err := c.WriteMsgUnix(head, rights, nil); err != nil {
		return err
	}
	_, err = c.Write(body)
	return err
}

// receive reads a message and its descriptors, which are the caller's.
func receive(c *net.UnixConn) (message, []*os.File, error) {
	head, oob := make([]byte, 4), make([]byte, unix.CmsgSpace(4*4))
	n, on, _, _, err := c.ReadMsgUnix(head, oob)
	if err != nil {
		return message{}, nil, err
	}
	if n == 0 {
		return message{}, nil, io.EOF
	}
	files, err := rights(oob[:on])
	if err != nil {
		return message{}, nil, err
	}
	fail := func(err error) (message, []*os.File, error) {
		for _, f := range files {
			f.Close()
		}
		return message{}, nil, err
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return fail(err)
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxMessage {
		return fail(fmt.Errorf("a message of %d bytes", size))
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return fail(err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return fail(err)
	}
	return m, files, nil
}

func rights(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	controls, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range controls {
		fds, err := unix.ParseUnixRights(&controls[i])
		if err != nil {
			continue // not descriptors
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}
