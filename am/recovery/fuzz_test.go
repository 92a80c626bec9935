package recovery

import (
	"encoding/json"
	"testing"

	"holdfast/proto"
	"holdfast/test/bound"
)

// FuzzJournal reads what an application master finds of the one before it.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"version": 1, "generation": 2, "tasks": [{"name": "ps-0", "state": 3, "attempt": 1, "container": "c", "awaiting_expiry": {"d": 1}}], "import_profiles": {"ps": {"modules": []}}}`))
	f.Add([]byte(`{"version": 1, "import_profiles": {"ps": null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer bound.Memory(t, len(text), 2000)()
		var j Journal
		if err := json.Unmarshal(text, &j); err == nil {
			j.Containers()
			if _, err := json.Marshal(j); err != nil {
				t.Errorf("what was read cannot be written: %v", err)
			}
		}
		if a, err := proto.UnmarshalAddress(text); err == nil && a.Address == "" {
			t.Error("an address of nothing")
		}
	})
}
