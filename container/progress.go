package container

import (
	"runtime"
	"time"

	"holdfast/container/stage"
	"holdfast/internal/proc"
	"holdfast/proto"
)

// reportProgress fills in a heartbeat what an attempt has done, and how much has to wait where
// its processes are.
func (a *attempt) reportProgress(h *proto.Heartbeat, processes []int) {
	a.lookForProgress()
	made := a.made()
	h.Step, h.ReportedSteps, h.StepAgeMs, h.OtherProgress = made.Step, made.Reports, made.Age(), a.otherProgress()
	if made.Reports >= stage.StepsAfterRestore {
		a.restore.End()
	}
	h.Restore = a.restore.Report()
	a.work.Of(processes)
	h.Looks, h.LooksAtWork = a.work.Counts()
	h.Scalars, h.TotalSteps = a.takeScalars(), a.totalSteps()
	if text, at := a.lastLine(); text != "" {
		h.Line, h.LineAgeMs = text, time.Since(at).Milliseconds()
	}
	h.Pressure = pressure()
}

// lookForProgress reads the progress files of an attempt.
func (a *attempt) lookForProgress() {
	for _, p := range a.processes {
		p.told.Look(time.Now())
	}
}

// pressure returns how much processes have to wait here for what they share; nil where the
// kernel does not tell.
func pressure() *proto.Pressure {
	p := &proto.Pressure{}
	var err error
	if p.Cpu, p.Own, err = proc.Pressure(proc.OfCPU); err != nil {
		return nil
	}
	p.Memory, _, _ = proc.Pressure(proc.OfMemory)
	p.Io, _, _ = proc.Pressure(proc.OfIO)
	if load, err := proc.Load(); err == nil {
		p.Load = load / float64(runtime.NumCPU())
	}
	return p
}
