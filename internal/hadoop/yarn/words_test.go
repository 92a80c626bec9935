package yarn

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestWaiting(t *testing.T) {
	const stamped = "[Sat Nov 21 11:46:02 +0000 2026] "
	tests := []struct {
		state State
		text  string
		want  []string
	}{
		{StateAccepted, stamped + "Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; AM Resource Request = <memory:1024, vCores:1>; Queue Resource Limit for AM = <memory:2048, vCores:1>; User AM Resource Limit of the queue = <memory:2048, vCores:1>; Queue AM Resource Usage = <memory:2048, vCores:2>; ",
			[]string{"small", "as many application masters as it allows", "2 GB"}},
		{StateAccepted, stamped + "Application is added to the scheduler and is not yet activated. User's AM resource limit exceeded.  Details : User AM Resource Limit of the queue = <memory:512, vCores:1>", []string{"the user ann", "512 MB"}},
		{StateAccepted, stamped + "Application is Activated, waiting for resources to be assigned for AM.  Details : AM Partition = <DEFAULT_PARTITION>", []string{"no node has room for the application master"}},
		{StateAccepted, "AM container is launched, waiting for AM container to Register with RM", []string{"is starting"}},
		{StateAccepted, stamped + "Something new.\nMore", []string{"Something new."}},
		{StateAccepted, "", []string{"accepted"}},
		{StateNewSaving, "", []string{"taking the job"}},
	}
	for _, tt := range tests {
		got := Waiting(Report{State: tt.state, Diagnostics: tt.text, Queue: "small", User: "ann"}, time.Minute)
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%q: %q does not say %q", tt.text, got, w)
			}
		}
		if strings.Contains(got, "[") || strings.Contains(got, "\n") {
			t.Errorf("%q is not for people", got)
		}
	}
	// Nothing is wrong yet where the nodes have not been offered the application.
	if got := Waiting(Report{State: StateAccepted, Diagnostics: tests[2].text}, time.Second); !strings.Contains(got, "placing") || strings.Contains(got, "room") {
		t.Errorf("one that is a second old: %q", got)
	}
	for _, s := range []State{StateRunning, StateFinished, StateFailed, StateKilled} {
		if got := Waiting(Report{State: s, Diagnostics: "x"}, time.Minute); got != "" {
			t.Errorf("%s waits: %q", s, got)
		}
	}
}

func TestCheckDemands(t *testing.T) {
	most := Resource{MemoryMB: 8192, VCores: 4, Others: map[string]Amount{"license": {2, ""}, "disk": {math.MaxInt64, "G"}}}
	if err := CheckDemands(most, []Demand{{Role: "ps", Count: 2, Resource: Resource{MemoryMB: 1024, VCores: 1}}, {Role: "worker", Count: 2, Resource: Resource{MemoryMB: 8192, VCores: 4}}}); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		d    Demand
		want []string
	}{
		{Demand{Role: "worker", Count: 2, Resource: Resource{MemoryMB: 65536, VCores: 1}}, []string{`"worker"`, "64 GB", "8 GB", "--worker-memory"}},
		{Demand{Role: "chief", Count: 1, Resource: Resource{MemoryMB: 1024, VCores: 16}}, []string{`"chief"`, "16 vcores", "--chief-vcores"}},
		{Demand{Role: "chief", Count: 1, Resource: Resource{MemoryMB: 1024, VCores: 1, GPUs: 1}}, []string{`"chief"`, "1 GPU", "no GPUs", "--chief-gpus 0"}},
		{Demand{Role: "w", Count: 1, Resource: Resource{MemoryMB: 1024, VCores: 1, Others: map[string]Amount{"license": {3, ""}}}}, []string{"3 license", "at most 8 GB, 4 vcores, 2 license", "lower --w-resource"}},
		{Demand{Master: true, Count: 1, Resource: Resource{MemoryMB: 9000, VCores: 1}}, []string{"the application master asks for", "lower --am-memory"}},
	} {
		err := CheckDemands(most, []Demand{tt.d})
		if err == nil {
			t.Errorf("%+v was accepted", tt.d)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
}
