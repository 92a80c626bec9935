// Package recovery is how a job survives the loss of its application master: the journal
// that each master attempt writes, what a new attempt reads of its predecessor, the
// address file by which agents and clients find the present master, and the liveness
// file by which agents that have lost their connection can tell that it is alive.
//
// In the job's directory, with the names from package proto:
//
//	journal/ATTEMPT.json  the journal of a master attempt
//	am.json               the address of the latest attempt; its modification time is
//	                      the master's heartbeat
//
// Each attempt writes a journal file of its own, so a superseded attempt cannot
// overwrite its successor's. The order of events at a takeover is what makes that safe:
// the successor announces itself in am.json and then reads the journal; the predecessor
// writes its journal, then looks for a successor, and then sends the messages that the
// entry describes. So either the successor reads the entry, or the messages are not sent.
package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core/journal"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// journalVersion is that of the format of journal files.
const journalVersion = 1

// Journal is what a successor must know.
type Journal struct {
	Version int `json:"version"`
	journal.Journal
	// ImportProfiles say what the scripts of each role import, for prewarming.
	ImportProfiles map[string]ImportProfile `json:"import_profiles,omitempty"`
}

// ImportProfile is a message whose JSON is protobuf's.
type ImportProfile struct{ *proto.ImportProfile }

// MarshalJSON implements json.Marshaler.
func (p ImportProfile) MarshalJSON() ([]byte, error) { return protojson.Marshal(p.ImportProfile) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *ImportProfile) UnmarshalJSON(text []byte) error {
	p.ImportProfile = &proto.ImportProfile{}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, p.ImportProfile)
}

// NewJournal returns the journal of a core state and of import profiles by role.
func NewJournal(j journal.Journal, profiles map[string]*proto.ImportProfile) Journal {
	list := make(map[string]ImportProfile, len(profiles))
	for role, p := range profiles {
		list[role] = ImportProfile{p}
	}
	return Journal{Version: journalVersion, Journal: j, ImportProfiles: list}
}

// journalName is the name of an attempt's journal in the job's directory.
func journalName(attempt int) string {
	return path.Join(proto.JournalDir, fmt.Sprintf("%d.json", attempt))
}

func readJournal(ctx context.Context, dir store.Store, name string) (Journal, error) {
	var j Journal
	text, err := store.ReadFile(ctx, dir, name)
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	switch {
	case err != nil:
		return Journal{}, fmt.Errorf("%s: %w", path.Join(dir.URI(), name), err)
	case j.Version != journalVersion:
		return Journal{}, fmt.Errorf("%s: it is of version %d, and this program writes version %d", path.Join(dir.URI(), name), j.Version, journalVersion)
	}
	return j, nil
}
