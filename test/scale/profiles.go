package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profiles are written of each phase of a measurement: how the CPU was used in
// it, and what was in memory at its end.
type profiles struct {
	dir string // empty: none are
	now string // the phase
	cpu *os.File
}

func newProfiles(dir string) (*profiles, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	p := &profiles{dir: dir}
	p.phase("start")
	return p, nil
}

// phase ends the present phase and begins another.
func (p *profiles) phase(name string) {
	if p.dir == "" {
		return
	}
	if p.cpu != nil {
		pprof.StopCPUProfile()
		p.cpu.Close()
		p.memory()
	}
	p.now = name
	var err error
	if p.cpu, err = os.Create(filepath.Join(p.dir, name+".cpu")); err == nil {
		err = pprof.StartCPUProfile(p.cpu)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profiling:", err)
	}
}

// memory writes what is in memory: the heap, and how much all else takes.
func (p *profiles) memory() {
	heap, err := os.Create(filepath.Join(p.dir, p.now+".heap"))
	if err == nil {
		err = pprof.WriteHeapProfile(heap)
		heap.Close()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text := fmt.Sprintf("goroutines %d\nMB: live %d, heap in use %d, idle and not given back %d, stacks %d, the collector's %d, other %d\ncollections %d\n",
		runtime.NumGoroutine(), m.HeapAlloc>>20, m.HeapInuse>>20, (m.HeapIdle-m.HeapReleased)>>20, m.StackInuse>>20,
		m.GCSys>>20, (m.MSpanSys+m.MCacheSys+m.BuckHashSys+m.OtherSys)>>20, m.NumGC)
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, p.now+".memory"), []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profiling:", err)
	}
}
