package format

import (
	"context"
	"path"

	"holdfast/hdfsckpt/store"
)

// What formats whose checkpoints are single files have in common.

// standsAlone reports whether a file may be a checkpoint by itself, by where it lies: not
// in a directory that is one with all that is in it, nor among what is still written.
func standsAlone(file string) bool {
	_, inStepDir := stepDirOf(file)
	return !inStepDir && !hidden(file) && !isPartsDir(path.Base(path.Dir(file)))
}

// savedInPlace is the checkpoint of that name, which a program saves over by replacing the
// file that makes it one.
func savedInPlace(name string) Owner {
	return Owner{Checkpoint: name, InPlace: true, Series: SeriesOf(name)}
}

// claimFiles claims each file of a directory that is named as the format's are.
func claimFiles(d *Dir, named func(base string) bool, check func(context.Context, store.Store, File) (*Checkpoint, error)) []Claim {
	var claims []Claim
	for _, e := range d.Entries {
		if e.Mode.IsRegular() && named(e.Name) {
			claims = append(claims, Claim{Check: func(ctx context.Context) (*Checkpoint, error) { return check(ctx, d.Store, FileOf(d.Name, e)) }})
		}
	}
	return claims
}
