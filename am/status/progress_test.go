package status

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/am/core/event"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

func TestProgress(t *testing.T) {
	p := newProgress()
	now := time.Unix(1000, 0)
	for i := range 100 {
		now = now.Add(time.Second)
		for _, task := range []string{"worker-1", "worker-0"} {
			if i%2 == 0 && !p.report(now, task, p.steps[task]+5) {
				t.Fatal("a new step is none")
			}
		}
	}
	if p.rate < 2 || p.rate > 3 {
		t.Errorf("%.2f steps a second", p.rate)
	}
	if p.report(now, "worker-0", p.steps["worker-0"]) || p.report(now, "worker-0", 0) {
		t.Error("what is no step is one")
	}
	if want := (event.StepsReported{Steps: []event.Step{{Task: "worker-0", Step: 250}, {Task: "worker-1", Step: 250}}}); !p.due(now) || !reflect.DeepEqual(p.take(now), want) {
		t.Errorf("core is not told of steps")
	}
	now = now.Add(stepsInterval / 2)
	p.report(now, "worker-0", 251)
	p.saving = true
	if p.due(now) {
		t.Error("core is told too often")
	}
	now = now.Add(stepsInterval)
	if want := (event.StepsReported{Steps: []event.Step{{Task: "worker-0", Step: 251}}, Saving: true}); !p.due(now) || !reflect.DeepEqual(p.take(now), want) || p.due(now.Add(time.Hour)) {
		t.Errorf("core is not told that a task saves, or more than once")
	}
	for i, moved := range []bool{true, false, true} {
		p.reportOther("worker-0", int64(1+i/2)) // 1, 1, 2
		now = now.Add(stepsInterval)
		if p.take(now).Saving != moved {
			t.Errorf("report %d of other progress: core is told %v", i, !moved)
		}
	}
	p.use("worker-0", time.Second, 5)
	now = now.Add(time.Second)
	if want := (event.StepsReported{Usage: []pace.Usage{{Task: "worker-0", CPU: time.Second, Bytes: 5}}}); !p.due(now) || !reflect.DeepEqual(p.take(now), want) {
		t.Errorf("core is not told what a task has used")
	}
	p.use("worker-0", 2*time.Second, 5)
	if p.due(now.Add(pace.UsageInterval/2)) || !p.due(now.Add(pace.UsageInterval)) {
		t.Error("core is told too often, or too seldom, what a task has used")
	}
}

// TestTheRateIsThatOfNow: of steps that take longer than a minute there is one, too, and where no
// steps are made any longer it is not that of before.
func TestTheRateIsThatOfNow(t *testing.T) {
	for _, c := range []struct {
		every time.Duration
		steps int64
	}{{time.Second, 10}, {20 * time.Second, 1}, {90 * time.Second, 1}, {10 * time.Minute, 500}} {
		t.Run(c.every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTraining(t, proto.LossRule_LOSS_RULE_ALONE)
				tr.step(0, event.Tick{})
				now := func() float64 {
					s, _ := tr.store.Snapshot()
					return s.StepsPerSecond
				}
				want := float64(c.steps) / c.every.Seconds()
				for i := range int64(100) {
					if i > 1 && (now() < want/2 || now() > want*2) {
						t.Fatalf("%d steps every %v are %v a second after %d of them", c.steps, c.every, now(), i)
					}
					tr.store.Heartbeat("c-worker-0", &proto.Heartbeat{Step: 1 + i*c.steps, ReportedSteps: 1})
					time.Sleep(c.every)
				}
				for range 100 { // it hangs
					tr.store.Heartbeat("c-worker-0", &proto.Heartbeat{Step: 1 + 99*c.steps, ReportedSteps: 1})
					time.Sleep(c.every)
				}
				if c.every < 10*time.Second {
					time.Sleep(10 * time.Minute)
				}
				if now() > want/20 {
					t.Errorf("of %d steps every %v there are %v a second long after the last", c.steps, c.every, now())
				}
			})
		})
	}
}
