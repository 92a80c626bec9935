package mount_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/hdfsckpt/store"

	"golang.org/x/sys/unix"
)

func TestTasksAppendToOneFile(t *testing.T) {
	dir := t.TempDir()
	tasksAppend(t, func() store.Store { return localStore(t, dir) }, true)
	noLeftovers(t, dir)
}

// tasksAppend has two tasks append to one log, by turns: first each opens it for
// each line, then both keep it open. Where a store lets only one have it open,
// as HDFS does, who opens it takes it over, and the other is told.
func tasksAppend(t *testing.T, open func() store.Store, together bool) {
	m := []*mounted{mountStore(t, open()), mountStore(t, open())}
	p := []*process{newProcess(t), newProcess(t)}
	p[0].put(m[0].path("log"), "")
	want := ""
	for i := range 6 {
		fd := p[i%2].open(m[i%2].path("log"), unix.O_WRONLY|unix.O_APPEND)
		line := fmt.Sprintf("task %d, line %d\n", i%2, i)
		p[i%2].write(fd, line)
		p[i%2].close(fd)
		want += line
	}
	if got := p[0].get(m[0].path("log")); got != want {
		t.Errorf("by turns: got\n%s", got)
	}
	var fds [2]int
	for i := range 2 {
		fds[i] = p[i].open(m[i].path("log"), unix.O_WRONLY|unix.O_APPEND)
	}
	written := []string{0: "", 1: ""}
	for i := range 6 {
		line := fmt.Sprintf("task %d keeps it open, line %d\n", i%2, i)
		if _, err := p[i%2].try(call{Op: "write", Fd: fds[i%2], Data: []byte(line)}); err == nil {
			written[i%2] += line
		}
	}
	for i := range 2 {
		_, err := p[i].try(call{Op: "close", Fd: fds[i]})
		if err != nil && (together || i == 1 || err != syscall.ESTALE) {
			t.Errorf("task %d closes: %v", i, err)
		}
		if err != nil {
			continue // it was told
		}
		got := ""
		for line := range strings.Lines(p[i].get(m[i].path("log"))) {
			if strings.HasPrefix(line, fmt.Sprintf("task %d keeps", i)) {
				got += line
			}
		}
		if got != written[i] {
			t.Errorf("task %d has closed without an error, and of its lines are there:\n%s\nwant\n%s", i, got, written[i])
		}
	}
	if got := p[0].get(m[0].path("log")); !strings.HasPrefix(got, want) {
		t.Errorf("what was there is gone: got\n%s", got)
	}
}

// TestManyContainers has agents and tasks of many containers write to one
// directory at once: what each has closed is whole, and all see the same.
func TestManyContainers(t *testing.T) {
	first, store := localBox(t)
	boxes := []*box{first}
	for len(boxes) < 6 {
		boxes = append(boxes, newBox(t, store, ""))
	}
	const rounds = 8
	var wg sync.WaitGroup
	for i, b := range boxes {
		wg.Go(func() {
			for n := range rounds {
				shard := fmt.Sprintf("ckpt-%d/shard-%d", n, i)
				content := fmt.Sprintf("%c*%d", 'a'+i, 300_000+i)
				answers := b.task.script(b.dir, []string{
					fmt.Sprintf("mkdir ckpt-%d", n), // one of them makes it
					"put " + shard + ".tmp " + content,
					"rename " + shard + ".tmp " + shard,
					"put latest " + content,
					"stat latest",
				})
				if answers[0] != "ok" && answers[0] != "EEXIST" || answers[1] != "ok" || answers[2] != "ok" || answers[3] != "ok" {
					t.Errorf("container %d, round %d: %q", i, n, answers)
				}
			}
		})
	}
	wg.Wait()
	for i, b := range boxes {
		for n := range rounds {
			if got := b.task.list(fmt.Sprintf("%s/ckpt-%d", b.dir, n)); len(got) != len(boxes) {
				t.Errorf("container %d sees %q in round %d", i, got, n)
			}
			other := (i + n) % len(boxes)
			want := strings.Repeat(string(rune('a'+other)), 300_000+other)
			if got := b.task.get(fmt.Sprintf("%s/ckpt-%d/shard-%d", b.dir, n, other)); got != want {
				t.Errorf("container %d reads %d bytes of container %d's that differ", i, len(got), other)
			}
		}
		got := b.task.get(b.dir + "/latest")
		if got == "" || got != strings.Repeat(got[:1], 300_000+int(got[0]-'a')) {
			t.Errorf("latest is nobody's: %d bytes", len(got))
		}
	}
	noLeftovers(t, store)
}

// TestListingWhileOthersChange: a list has every file that is there all the
// time, and none twice, whatever other tasks make and remove meanwhile.
func TestListingWhileOthersChange(t *testing.T) {
	m1, m2, p1, p2, dir := twoMounts(t)
	m3, p3 := mountStore(t, localStore(t, dir)), newProcess(t)
	const stay = 300
	for i := range stay {
		p1.put(fmt.Sprintf("%s/stays-%03d", m1.dir, i), "")
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i, m := range []*mounted{m1, m2} {
		p := []*process{p1, p2}[i]
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				a, b := fmt.Sprintf("%s/comes-%d-%d", m.dir, i, n%7), fmt.Sprintf("%s/goes-%d-%d", m.dir, i, n%5)
				p.put(a, "x")
				p.do(call{Op: "rename", Path: a, To: b})
				if n%3 == 0 {
					p.do(call{Op: "unlink", Path: b})
				}
			}
		})
	}
	for range 50 {
		names := p3.list(m3.dir)
		if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
			t.Errorf("names are listed twice: %q", names)
		}
		n := 0
		for _, name := range names {
			if strings.HasPrefix(name, "stays-") {
				n++
			}
		}
		if n != stay {
			t.Errorf("%d of the %d files that stay are listed", n, stay)
		}
	}
	close(done)
	wg.Wait()
}

// TestExclusiveCreation: O_EXCL is exclusive among what is closed, and within
// a task at once; mkdir is exclusive among all tasks.
func TestExclusiveCreation(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	p3 := newProcess(t)
	const exclusive = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	fd := p1.open(m1.path("lock"), exclusive)
	p3.fails(call{Op: "open", Path: m1.path("lock"), Flags: exclusive, Mode: 0o644}, syscall.EEXIST)
	p1.close(fd)
	p2.fails(call{Op: "open", Path: m2.path("lock"), Flags: exclusive, Mode: 0o644}, syscall.EEXIST)

	var wg sync.WaitGroup
	var made sync.Map
	for i, p := range []*process{p1, p2} {
		m := []*mounted{m1, m2}[i]
		wg.Go(func() {
			for n := range 50 {
				_, err := p.try(call{Op: "mkdir", Path: m.path(fmt.Sprint(n)), Mode: 0o755})
				if err == nil {
					if _, twice := made.LoadOrStore(n, i); twice {
						t.Errorf("both tasks made directory %d", n)
					}
				} else if err != syscall.EEXIST {
					t.Errorf("mkdir: %v", err)
				}
			}
		})
	}
	wg.Wait()
}
