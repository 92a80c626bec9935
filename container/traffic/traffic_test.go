package traffic_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"holdfast/container/traffic"
)

const sent, received = 300_000, 1_000_000

// TestMain: as a child of the test, it is a process that sends and receives.
func TestMain(m *testing.M) {
	if address := os.Getenv("TRAFFIC_TEST_TO"); address != "" {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_, err = c.Write(make([]byte, sent))
		}
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, received))
		}
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString("x")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends it
		return
	}
	os.Exit(m.Run())
}

// TestAProcessIsMeasured: what a process sends and receives is counted, once, and not what
// others do.
func TestAProcessIsMeasured(t *testing.T) {
	for _, on := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(on, func(t *testing.T) {
			l, err := net.Listen("tcp", on)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "TRAFFIC_TEST_TO="+l.Addr().String())
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { stdin.Close(); _ = cmd.Wait() }()
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, sent)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(make([]byte, received)); err != nil {
				t.Fatal(err)
			}
			if _, err := stdout.Read(make([]byte, 1)); err != nil { // it has received all
				t.Fatal(err)
			}
			var m, others traffic.Meter
			now := time.Now()
			if _, _, ok := m.Measure(now, nil); ok {
				t.Error("a rate is known after one look")
			}
			others.Measure(now, nil)
			now = now.Add(10 * time.Second)
			s, r, ok := m.Measure(now, []int{cmd.Process.Pid})
			if !ok || s < sent/10 || s > sent/10+1 || r != received/10 { // the SYN counts for a byte
				t.Errorf("in 10 seconds it has sent %v a second of %d bytes, and received %v of %d (%v)", s, sent, r, received, ok)
			}
			if again, _, _ := m.Measure(now.Add(time.Second), []int{cmd.Process.Pid}); again != s {
				t.Errorf("a moment later it sends %v a second, which was %v", again, s)
			}
			// The bytes are counted once, and not for others.
			if s, r, ok := m.Measure(now.Add(time.Hour), []int{cmd.Process.Pid}); s != 0 || r != 0 || !ok {
				t.Errorf("in the next hour it has sent %v a second, and received %v (%v)", s, r, ok)
			}
			if s, r, ok := others.Measure(now, []int{1 << 30}); s != 0 || r != 0 || !ok {
				t.Errorf("a process that is not there sends %v a second, and receives %v (%v)", s, r, ok)
			}
		})
	}
}

func BenchmarkMeasure(b *testing.B) {
	var m traffic.Meter
	now := time.Now()
	m.Measure(now, nil)
	for b.Loop() {
		now = now.Add(time.Hour)
		if _, _, ok := m.Measure(now, []int{os.Getpid()}); !ok {
			b.Fatal("the kernel does not tell")
		}
	}
}
