package mount_test

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	"holdfast/hdfsckpt/store"

	"golang.org/x/sys/unix"
)

func TestTensorFlowSave(t *testing.T) {
	dir := t.TempDir()
	tensorFlowSave(t, func() store.Store { return localStore(t, dir) })
	noLeftovers(t, dir)
}

// tensorFlowSave does what TensorFlow's sharded V2 save does, with a
// parameter server in each of two mounts and the chief in a third: each writes
// and renames its part, the last one merges, the chief names the checkpoint.
// (tensorflow/core/util/tensor_bundle, SaveV2 and MergeV2Checkpoints.)
func tensorFlowSave(t *testing.T, open func() store.Store) {
	const servers = 2
	var m []*mounted
	var p []*process
	for range servers + 1 {
		m = append(m, mountStore(t, open()))
		p = append(p, newProcess(t))
	}
	chief := servers
	events := p[chief].open(m[chief].path("events.out.tfevents.1"), forNew)
	for step := 0; step < 3; step++ {
		prefix := fmt.Sprintf("model.ckpt-%d", step)
		tmp := prefix + "_temp"
		var wg sync.WaitGroup
		for i := range servers {
			wg.Go(func() {
				if _, err := p[i].try(call{Op: "mkdir", Path: m[i].path(tmp), Mode: 0o755}); err != nil && err != syscall.EEXIST {
					t.Errorf("mkdir: %v", err)
				}
				part := fmt.Sprintf("%s/part-%05d-of-%05d", tmp, i, servers)
				for _, f := range []string{".data-00000-of-00001", ".index"} {
					state := m[i].path(part + f + ".tempstate123")
					fd := p[i].open(state, forNew)
					p[i].do(call{Op: "write", Fd: fd, Size: 8<<20 + 17, Fill: byte(10*step + i)})
					p[i].close(fd)
					p[i].do(call{Op: "rename", Path: state, To: m[i].path(part + f)})
				}
			})
		}
		wg.Wait()
		last := p[0]
		for i := range servers {
			part := m[0].path(fmt.Sprintf("%s/part-%05d-of-%05d", tmp, i, servers))
			if got := last.get(part + ".index"); got != string(pattern(8<<20+17, byte(10*step+i))[:len(got)]) {
				t.Fatalf("part %d reads %d bytes that differ", i, len(got))
			}
			last.do(call{Op: "rename", Path: part + ".data-00000-of-00001",
				To: m[0].path(fmt.Sprintf("%s.data-%05d-of-%05d", prefix, i, servers))})
		}
		last.put(m[0].path(prefix+".index"), "merged")
		for i := range servers {
			last.do(call{Op: "unlink", Path: m[0].path(fmt.Sprintf("%s/part-%05d-of-%05d.index", tmp, i, servers))})
		}
		last.do(call{Op: "rmdir", Path: m[0].path(tmp)})
		c := p[chief]
		c.put(m[chief].path("checkpoint.tmp4711"), "model_checkpoint_path: \""+prefix+"\"")
		c.do(call{Op: "rename", Path: m[chief].path("checkpoint.tmp4711"), To: m[chief].path("checkpoint")})
		c.write(events, fmt.Sprintf("step %d ", step))
		if step == 2 {
			for _, n := range c.list(m[chief].dir) {
				if len(n) > 12 && n[:12] == "model.ckpt-0" {
					c.do(call{Op: "unlink", Path: m[chief].path(n)})
				}
			}
		}
	}
	p[chief].close(events)

	// Restore: a task in a new container finds it all and reads past the end.
	m3, p3 := mountStore(t, open()), newProcess(t)
	if got := p3.get(m3.path("checkpoint")); got != `model_checkpoint_path: "model.ckpt-2"` {
		t.Errorf("checkpoint: %q", got)
	}
	want := []string{"checkpoint", "events.out.tfevents.1"}
	for step := 1; step < 3; step++ {
		for i := range servers {
			want = append(want, fmt.Sprintf("model.ckpt-%d.data-%05d-of-%05d", step, i, servers))
		}
		want = append(want, fmt.Sprintf("model.ckpt-%d.index", step))
	}
	if got := p3.list(m3.dir); !slices.Equal(got, want) {
		t.Errorf("listed:\n%q\nwant:\n%q", got, want)
	}
	fd := p3.open(m3.path("model.ckpt-2.data-00001-of-00002"), unix.O_RDONLY)
	if got := p3.pread(fd, 8<<20, 1<<20); got != string(pattern(8<<20+17, 21)[8<<20:]) {
		t.Errorf("the tail reads %d bytes, want 17", len(got))
	}
	if got := p3.pread(fd, 9<<20, 1<<20); got != "" {
		t.Errorf("past the end: %d bytes", len(got))
	}
	if got := m[chief].committed(); !slices.Contains(got, "checkpoint") {
		t.Errorf("the checkpoint's rename was not reported: %q", got)
	}
}
