package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client/terminal"
)

// plainInterval is the interval at which progress is told where there is no terminal.
const plainInterval = 10 * time.Second

// Bar shows progress in bytes on standard error where a person looks on; nil elsewhere.
func Bar(cmd *cobra.Command, name string) func(done, total int64) {
	return bar(cmd, name, func(n int64) string { return humanize.IBytes(uint64(n)) })
}

// CountBar is Bar for what is counted.
func CountBar(cmd *cobra.Command, name string) func(done, total int64) {
	return bar(cmd, name, func(n int64) string { return fmt.Sprint(n) })
}

// TimeBar shows how much of a time has passed, as Bar does, until it is stopped.
func TimeBar(cmd *cobra.Command, name string, total time.Duration) (stop func()) {
	show := bar(cmd, name, func(n int64) string { return fmt.Sprintf("%d s", n) })
	if show == nil {
		return func() {}
	}
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for passed := range int64(total.Seconds()) {
			show(passed, int64(total.Seconds()))
			select {
			case <-stopped:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(stopped)
		<-ended
		EraseBar(cmd)
	}
}

func bar(cmd *cobra.Command, name string, amount func(int64) string) func(done, total int64) {
	columns := Width()
	if columns == 0 {
		return nil
	}
	name = terminal.Line(name)
	var mu sync.Mutex
	var last time.Time
	return func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		done = min(done, total) // of a file that has grown since, more is read than it had
		over := done >= total
		if total <= 0 || !over && time.Since(last) < 100*time.Millisecond {
			return
		}
		last = time.Now()
		room := max(10, min(40, columns-terminal.Columns(name)-40))
		full := int(done * int64(room) / total)
		drawn := fmt.Sprintf(" [%s%s] %s of %s", strings.Repeat("#", full), strings.Repeat(".", room-full), amount(done), amount(total))
		fmt.Fprint(terminal.Raw(cmd.ErrOrStderr()), "\r")
		// What goes on in the next line would stay there when the bar is drawn again.
		fmt.Fprint(cmd.ErrOrStderr(), terminal.Cut(terminal.Cut(name, columns-1-terminal.Columns(drawn))+drawn, columns-1))
		if over {
			EraseBar(cmd)
		}
	}
}

// EraseBar erases what a bar has left in the cursor's line.
func EraseBar(cmd *cobra.Command) {
	if Width() > 0 {
		fmt.Fprint(terminal.Raw(cmd.ErrOrStderr()), "\r\x1b[K")
	}
}

// Uploads shows how far the upload of a job's files is: by a bar in a terminal, and
// elsewhere by a line now and again.
func Uploads(cmd *cobra.Command) func(done, total int64) {
	if b := Bar(cmd, "uploading"); b != nil {
		return b
	}
	last := time.Now()
	return func(done, total int64) {
		if time.Since(last) < plainInterval {
			return
		}
		last = time.Now()
		Note(cmd, fmt.Sprintf("uploading: %s of %s", humanize.IBytes(uint64(done)), humanize.IBytes(uint64(total))))
	}
}
