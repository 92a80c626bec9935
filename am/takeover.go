package am

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core"
	"holdfast/hdfsckpt"
	"holdfast/proto"
)

// Predecessor is what an AM attempt finds of the one before it.
type Predecessor struct {
	Journal core.Journal     // empty if it wrote none
	Status  *proto.JobStatus // as it was shown last; nil if it was not
	Notes   []string         // what could not be read, for the job's story
}

// FindPredecessor reads what the AM attempts before this one have left in the
// job's directory. What cannot be read is noted; an error means that the
// directory does not answer.
func FindPredecessor(ctx context.Context, dir hdfsckpt.Store, attempt int) (*Predecessor, error) {
	p := &Predecessor{}
	list, err := dir.List(ctx, proto.JournalDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for the journal of the application master before this one in %s: %w", dir.URI(), err)
	}
	newest := 0
	for _, i := range list {
		n, err := strconv.Atoi(strings.TrimSuffix(i.Name, ".json"))
		if err == nil && n < attempt {
			newest = max(newest, n)
		}
	}
	if newest > 0 {
		if p.Journal, err = readJournal(ctx, dir, journalName(newest)); err != nil {
			p.Notes = append(p.Notes, fmt.Sprintf("the journal of application master attempt %d cannot be used, so all tasks start again from the last checkpoint: %v", newest, err))
		}
	}
	text, err := hdfsckpt.ReadFile(ctx, dir, proto.StatusFile)
	if err == nil {
		s := &proto.JobStatus{}
		if err = (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, s); err == nil {
			p.Status = s
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Notes = append(p.Notes, fmt.Sprintf("the job's story until now is lost: %v", err))
	}
	return p, nil
}

func readJournal(ctx context.Context, dir hdfsckpt.Store, name string) (core.Journal, error) {
	var f journalFile
	text, err := hdfsckpt.ReadFile(ctx, dir, name)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	switch {
	case err != nil:
		return core.Journal{}, fmt.Errorf("%s: %w", path.Join(dir.URI(), name), err)
	case f.Version != journalVersion:
		return core.Journal{}, fmt.Errorf("%s: it is of version %d, and this program writes version %d", path.Join(dir.URI(), name), f.Version, journalVersion)
	}
	return f.Journal, nil
}
