package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/test/pty"
)

// envProgram has the test binary be one of programs.
const envProgram = "CLI_TEST_PROGRAM"

var programs = map[string]func(){
	// A file has got longer since its length was found out.
	"bar": func() {
		bar := cli.Bar(&cobra.Command{}, "growing")
		for _, done := range []int64{50, 100, 150, 1 << 40} {
			bar(done, 100)
		}
		fmt.Println("went on")
	},
	// A tensor has a name that is longer than a line.
	"long": func() {
		for done := range int64(5) {
			cli.Bar(&cobra.Command{}, "損失\t"+strings.Repeat("model.decoder.", 9)+"weight")(done<<20, 1023<<20)
		}
		fmt.Println("\nwent on")
	},
	// The clearing up of what was interrupted does not come to an end.
	"interrupted": func() {
		ctx := cli.Interruptible(context.Background())
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("interrupted:", cli.Interrupted(ctx))
		select {}
	},
	"taken": func() {
		ctx := cli.Interruptible(context.Background())
		signals, giveBack := cli.TakeInterrupts(ctx)
		fmt.Println("ready")
		for range 3 {
			fmt.Println("told of", <-signals, ctx.Err(), cli.Interrupted(ctx))
		}
		giveBack()
		fmt.Println("gave back")
		<-ctx.Done()
		fmt.Println("ended")
	},
}

func TestMain(m *testing.M) {
	if program := programs[os.Getenv(envProgram)]; program != nil {
		program()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func program(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envProgram+"="+name, "TERM=xterm")
	return cmd
}

// TestABarOfWhatGrows: more may be read than there was in all when the reading began.
func TestABarOfWhatGrows(t *testing.T) {
	x := pty.Start(t, program("bar"), 100, 24)
	if code := x.Code(); code != 0 {
		t.Fatalf("it ended with %d: %s", code, x.Shown())
	}
	x.See("went on", 1)
}

// TestABarIsOneLine: whatever it is of, so that the next one is drawn over it.
func TestABarIsOneLine(t *testing.T) {
	for _, columns := range []int{40, 80} {
		x := pty.Start(t, program("long"), columns, 24)
		x.See("went on", 1)
		for line := range strings.Lines(strings.ReplaceAll(x.Shown(), "\r", "\n")) {
			if n := terminal.Columns(strings.TrimRight(line, "\n")); n >= columns || strings.Contains(line, "\t") {
				t.Errorf("a line takes %d of %d columns: %q", n, columns, line)
			}
		}
	}
}

// TestInterrupts: the first ends a command's context, and the second the process, unless the
// command takes them itself.
func TestInterrupts(t *testing.T) {
	for _, x := range []struct {
		program string
		say     []string // after each a signal is sent
		rest    string
		code    int
	}{
		{"interrupted", []string{"ready", "interrupted: true"}, "", client.ExitInterrupted},
		{"taken", []string{"ready", "told of interrupt <nil> false", "told of interrupt <nil> false", "gave back"}, "ended", 0},
	} {
		t.Run(x.program, func(t *testing.T) {
			cmd := program(x.program)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
			lines := bufio.NewScanner(out)
			for _, want := range x.say {
				for lines.Scan() && lines.Text() != want {
				}
				if lines.Text() != want {
					t.Errorf("it says %q instead of %q", lines.Text(), want)
				}
				if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
					t.Fatal(err)
				}
			}
			var rest []string
			for lines.Scan() {
				rest = append(rest, lines.Text())
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != x.code || strings.Join(rest, "\n") != x.rest {
				t.Errorf("it ended with %d: %q", code, rest)
			}
		})
	}
}
