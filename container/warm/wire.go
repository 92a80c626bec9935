package warm

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// A message is its length (four bytes, big-endian) and a JSON object. With the length of a
// message to the interpreter go descriptors (SCM_RIGHTS).

// ImportProfile is the environment and sys.path under which a script imports the
// module. It is the first message.
type ImportProfile struct {
	Environ map[string]*string `json:"environ"` // what differs from the start; nil: the variable is not set
	Path    []string           `json:"path"`    // sys.path
}

// forking asks for an attempt. Its descriptors are the attempt's output and its gate, a pipe
// that holds the attempt until a byte comes. With Stay there is no gate, and the interpreter
// itself becomes the attempt.
type forking struct {
	Argv    []string    `json:"argv"`
	Environ [][2]string `json:"environ"`
	Dir     string      `json:"dir"`
	Stay    bool        `json:"stay"`
}

// answer is the answer to an ImportProfile or a forking.
type answer struct {
	Ready   bool   `json:"ready"`
	Common  int    `json:"common"`  // with Ready: the number of words of the command that are the same in every attempt
	Refused string `json:"refused"` // why the interpreter cannot be used
	Pid     int    `json:"pid"`
}

func send(c *net.UnixConn, message any, fds ...int) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := c.WriteMsgUnix(binary.BigEndian.AppendUint32(nil, uint32(len(body))), rights, nil); err != nil {
		return err
	}
	_, err = c.Write(body)
	return err
}

// longest bounds an answer.
const longest = 1 << 20

func receive(c *net.UnixConn) (answer, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(c, head); err != nil {
		return answer{}, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > longest {
		return answer{}, fmt.Errorf("an answer of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return answer{}, err
	}
	var a answer
	err := json.Unmarshal(body, &a)
	return a, err
}
