package write

import (
	"bytes"
	"math/rand/v2"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/budget"
	"holdfast/internal/hadoop/hdfs/zone"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// TestEncrypted looks at the packets of a file in an encryption zone: each byte is
// encrypted once, by its position in the file, with little memory too.
func TestEncrypted(t *testing.T) {
	cipher, err := zone.NewCipher([]byte("0123456789abcdef"), []byte("fedcba9876543210"))
	if err != nil {
		t.Fatal(err)
	}
	for name, memory := range map[string]*budget.Memory{"enough": budget.New(64<<20, nil), "little": budget.New(1, nil)} {
		for _, begin := range []int64{0, 1, 511, 1<<40 + 7} { // opened to append
			c := New(nil, Options{Memory: memory})
			f := newFile(c, "/zone/f", &wire.HdfsFileStatusProto{
				Length: pb.Uint64(uint64(begin)), FileId: pb.Uint64(1), Blocksize: pb.Uint64(300_032),
			}, nil)
			f.cipher, f.begin = cipher, begin
			content := make([]byte, 1_000_003)
			for i := range content {
				content[i] = byte(rand.Uint32())
			}
			for rest := content; len(rest) > 0; {
				n := min(len(rest), 1+rand.IntN(70_000))
				if err := f.Take(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			var got []byte
			for _, p := range append(f.queue, f.current) {
				got = append(got, p.data()...)
			}
			if bytes.Contains(got, content[:16]) {
				t.Errorf("%s memory, from %d on: it is not encrypted", name, begin)
			}
			cipher.XOR(got, begin)
			if !bytes.Equal(got, content) {
				t.Errorf("%s memory, from %d on: %d other bytes are sent", name, begin, len(got))
			}
			f.watch.Stop()
			f.stop()
		}
	}
}
