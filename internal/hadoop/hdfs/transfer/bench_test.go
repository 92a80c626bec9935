package transfer_test

import (
	"net"
	"testing"
)

// sink takes what is written: only protecting it is measured.
type sink struct{ net.Conn }

func (sink) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkWrite protects packets as a writer sends them.
func BenchmarkWrite(b *testing.B) {
	for _, file := range recordings {
		r := load(b, file.file)
		b.Run(r.Mode, func(b *testing.B) {
			socket := &switched{Conn: &replay{received: r.Received, split: 100}}
			c, err := r.Login.Handshake(socket)
			if err != nil {
				b.Fatal(err)
			}
			socket.Conn = sink{}
			packet := make([]byte, 66_000)
			b.SetBytes(int64(len(packet)))
			for b.Loop() {
				if _, err := c.Write(packet); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type switched struct{ net.Conn }
