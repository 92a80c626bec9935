package transfer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/sasl"
	"holdfast/test/bound"
)

// recording is a small file's way to a DataNode: what went over the socket, and
// what was meant.
type recording struct {
	Login    transfer.Login
	Mode     string
	Sent     []byte
	Received []byte
	Written  [][]byte // what each Write was given
	Read     []byte
}

// recordings are made on DataNodes of Hadoop 3.4.2 by TestRecord.
var recordings = []struct {
	file              string
	qop               string // "": with a data encryption key
	suites, algorithm string // of the DataNodes
}{
	{"authentication", sasl.Auth, aes, ""},
	{"integrity", sasl.AuthInt, aes, ""},
	{"privacy-aes", sasl.AuthConf, aes, ""},
	{"privacy-3des", sasl.AuthConf, "", ""},
	{"encryption-rc4", "", "", "rc4"},
	{"encryption-aes", "", aes, "3des"},
}

const aes = "AES/CTR/NoPadding"

func load(t testing.TB, name string) recording {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// replay is a socket on which the DataNode of a recording answers, in pieces of
// at most split bytes.
type replay struct {
	net.Conn
	received []byte
	sent     bytes.Buffer
	split    int
}

func (c *replay) Write(b []byte) (int, error) { return c.sent.Write(b) }

func (c *replay) Read(b []byte) (int, error) {
	if len(c.received) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.received[:min(len(c.received), 1+rand.IntN(c.split))])
	c.received = c.received[n:]
	return n, nil
}

// TestRecorded: the same bytes go to the DataNode, and the same are read,
// however the socket and the reader split them.
func TestRecorded(t *testing.T) {
	for _, file := range recordings {
		t.Run(file.file, func(t *testing.T) {
			r := load(t, file.file)
			for split := 1; split < 3000; split = 3*split + 1 {
				socket := &replay{received: r.Received, split: split}
				c, err := r.Login.Handshake(socket)
				if err != nil {
					t.Fatal(err)
				}
				if got := transfer.ModeOf(c).String(); got != r.Mode {
					t.Errorf("the mode is %s, recorded %s", got, r.Mode)
				}
				for _, b := range r.Written {
					given := bytes.Clone(b)
					if n, err := c.Write(given); n != len(b) || err != nil {
						t.Fatalf("%d of %d bytes were written: %v", n, len(b), err)
					}
					if !bytes.Equal(given, b) {
						t.Fatal("Write has changed what it was given")
					}
				}
				if got := socket.sent.Bytes(); !bytes.Equal(got, r.Sent) {
					t.Errorf("sent\n%x, recorded\n%x", got, r.Sent)
				}
				var got []byte
				for {
					b := make([]byte, 1+rand.IntN(split))
					n, err := c.Read(b)
					got = append(got, b[:n]...)
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(got, r.Read) {
					t.Errorf("read\n%x, recorded\n%x", got, r.Read)
				}
			}
		})
	}
}

// impatient is a socket whose deadline passes before each piece that comes, once it is on.
type impatient struct {
	replay
	on, came bool
}

func (c *impatient) Read(b []byte) (int, error) {
	if c.came = !c.came && c.on; c.came {
		return 0, os.ErrDeadlineExceeded
	}
	return c.replay.Read(b)
}

// TestADeadlineLosesNothing: whoever reads on after a deadline reads all that the DataNode has
// sent, wherever in a message the deadline has passed.
func TestADeadlineLosesNothing(t *testing.T) {
	for _, file := range recordings {
		t.Run(file.file, func(t *testing.T) {
			r := load(t, file.file)
			for split := 1; split < 3000; split = 3*split + 1 {
				socket := &impatient{replay: replay{received: r.Received, split: split}}
				c, err := r.Login.Handshake(socket)
				if err != nil {
					t.Fatal(err)
				}
				socket.on = true
				var got []byte
				b, deadlines := make([]byte, 1000), 0
				for err == nil || errors.Is(err, os.ErrDeadlineExceeded) && deadlines < 2*len(r.Received) {
					var n int
					if n, err = c.Read(b); err != nil {
						deadlines++
					}
					got = append(got, b[:n]...)
				}
				if err != io.EOF || !bytes.Equal(got, r.Read) {
					t.Fatalf("in pieces of up to %d bytes, %d of %d bytes are read: %v", split, len(got), len(r.Read), err)
				}
			}
		})
	}
}

// TestForged changes each byte that the DataNode sent after the handshake: where
// messages have check codes, no other content is ever handed out.
func TestForged(t *testing.T) {
	for _, name := range []string{"integrity", "privacy-3des", "encryption-rc4"} {
		r := load(t, name)
		socket := &replay{received: r.Received, split: 1}
		if _, err := r.Login.Handshake(socket); err != nil {
			t.Fatal(err)
		}
		for i := len(r.Received) - len(socket.received); i < len(r.Received); i++ {
			forged := bytes.Clone(r.Received)
			forged[i] ^= 0x10
			c, err := r.Login.Handshake(&replay{received: forged, split: 100})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(c)
			if err == nil || !bytes.HasPrefix(r.Read, got) {
				t.Fatalf("%s: with byte %d changed, %d bytes were read: %v", name, i, len(got), err)
			}
		}
	}
}

// FuzzDataNode lets a DataNode say anything, in and after the handshake.
func FuzzDataNode(f *testing.F) {
	for i, r := range recordings {
		f.Add(i, load(f, r.file).Received)
	}
	f.Fuzz(func(t *testing.T, i int, received []byte) {
		r := load(t, recordings[uint(i)%uint(len(recordings))].file)
		defer bound.Memory(t, len(received), 1000)()
		c, err := r.Login.Handshake(&replay{received: received, split: 1000})
		if err != nil {
			return
		}
		got, err := io.ReadAll(c)
		if mode := transfer.ModeOf(c).String(); mode != "authentication" && !strings.Contains(mode, aes) && !bytes.HasPrefix(r.Read, got) {
			t.Errorf("%s: read %q, %v", mode, got, err)
		}
	})
}
