package yarn

import (
	"testing"

	"holdfast/test/bound"
)

func TestIDs(t *testing.T) {
	app := ApplicationID{Cluster: 1700000000000, Number: 7}
	tests := []struct {
		id   ContainerID
		text string
	}{
		{ContainerID{AttemptID{app, 1}, 12}, "container_1700000000000_0007_01_000012"},
		{ContainerID{AttemptID{app, 2}, 3<<40 | 12}, "container_e03_1700000000000_0007_02_000012"},
		{ContainerID{AttemptID{ApplicationID{1700000000000, 12345}, 123}, 1234567}, "container_1700000000000_12345_123_1234567"},
	}
	for _, tt := range tests {
		if got := tt.id.String(); got != tt.text {
			t.Errorf("%+v is written %s, want %s", tt.id, got, tt.text)
		}
		if got, err := ParseContainerID(tt.text); err != nil || got != tt.id {
			t.Errorf("%s is read as %+v, %v", tt.text, got, err)
		}
	}
	if got, err := ParseApplicationID("application_1700000000000_0007"); err != nil || got != app || got.String() != "application_1700000000000_0007" {
		t.Errorf("application: %v, %v", got, err)
	}
	for _, bad := range []string{"", "application_1_-2", "application_1", "job_1_2", "application_a_1", "local-1", "application_1_99999999999"} {
		if _, err := ParseApplicationID(bad); err == nil {
			t.Errorf("%q was taken for an application's id", bad)
		}
	}
	for _, bad := range []string{"", "container_1_2_3", "container_ex_1_2_3_4", "container_1_2_3_4_5", "container_1_2_3_+4", "container_e1_1_1_1"} {
		if _, err := ParseContainerID(bad); err == nil {
			t.Errorf("%q was taken for a container's id", bad)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("container_e03_1700000000000_0007_02_000012")
	f.Add("container_1_1_1_1")
	f.Add("application_1700000000000_0007")
	f.Fuzz(func(t *testing.T, s string) {
		defer bound.Memory(t, len(s), 64)()
		if id, err := ParseContainerID(s); err == nil {
			if again, err := ParseContainerID(id.String()); err != nil || again != id {
				t.Errorf("%q: %+v is not read back: %+v, %v", s, id, again, err)
			}
		}
		if id, err := ParseApplicationID(s); err == nil {
			if again, err := ParseApplicationID(id.String()); err != nil || again != id {
				t.Errorf("%q: %+v is not read back: %+v, %v", s, id, again, err)
			}
		}
	})
}
