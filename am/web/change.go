package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

// keptByDefault is how many checkpoints a prune keeps where nothing is said.
const keptByDefault = 3

// maxForm bounds the body of a request that changes something, in bytes.
const maxForm = 64 << 10

// Changes lets some who see pages change the checkpoints that are on them. A change is made in
// two requests: the first shows the plan, and the second has a proof of it, which only the page
// with that plan has, made for the one who asks. So another site can neither make a browser ask
// for a change without having read a page, nor anybody agree to what was not shown.
type Changes struct {
	// May returns who sends a request, and an error that says why they may not change
	// checkpoints.
	May func(r *http.Request) (who string, err error)
	// Proxied means that requests come through YARN's proxy, which passes on GET and PUT, and
	// of what browsers say of the site that asks only what it does not know to be its own. A
	// browser sends a PUT to another site only if that agrees, and the proxy does not.
	Proxied bool
	// Log gets a line about each change, and each that was refused, with the keys audit (what),
	// who, allowed, directory, and what the change is about.
	Log *logrus.Entry
	key [32]byte
}

// NewChanges returns Changes with a key of its own for the proofs of plans.
func NewChanges(may func(*http.Request) (string, error), proxied bool, log *logrus.Entry) *Changes {
	c := &Changes{May: may, Proxied: proxied, Log: log}
	_, _ = rand.Read(c.key[:]) // it does not fail
	return c
}

// fromOwnPage returns an error for a request that may come from a page of another site.
func (c *Changes) fromOwnPage(r *http.Request) error {
	if c.Proxied {
		if r.Method != http.MethodPut {
			return errors.New("through YARN's proxy changes are sent with PUT")
		}
		return nil
	}
	return http.NewCrossOriginProtection().Check(r)
}

// proof returns what shows that a user was shown a plan.
func (c *Changes) proof(who, plan string) string {
	m := hmac.New(sha256.New, c.key[:])
	fmt.Fprintf(m, "%q %s", who, plan)
	return hex.EncodeToString(m.Sum(nil))
}

func (c *Changes) proves(proof, who, plan string) bool {
	return hmac.Equal([]byte(proof), []byte(c.proof(who, plan)))
}

// changeView is what the page of a planned change shows, and the page of its outcome.
type changeView struct {
	Action     string // prune or rollback
	Dir        int
	Path       string // of the directory, as the script spells it
	URI        string
	Keep       int        // of a prune
	Every      int64      // of a prune; 0: none
	Parameters url.Values // that ask for the change

	Prune    *inspect.Pruning
	Rollback *inspect.Rollback
	Question string // what a person is to agree to; empty if there is nothing to do
	Proof    string // of the plan, for those who may agree
	Refused  string // why nobody can agree here
	Error    string // why nothing was done, or not all
	Command  string // that does the same
}

// parseChange returns the change that parameters ask for, and what plans it. who asks is recorded
// with it.
func (s *server) parseChange(action string, p *parameters, who string) (*changeView, inspect.Planner, error) {
	v := &changeView{Action: action, Dir: p.number("dir", 0, 0)}
	var step int64
	if action == "prune" {
		v.Keep, v.Every = p.number("keep", keptByDefault, 1), int64(p.number("every", 0, 1))
	} else {
		var err error
		if step, err = strconv.ParseInt(p.Get("step"), 10, 64); err != nil {
			p.bad("step", "the step to go back to")
		}
	}
	all := s.Checkpoints.Directories()
	switch {
	case p.err != nil:
		return nil, nil, p.err
	case v.Dir >= len(all):
		return nil, nil, errNotFound
	}
	v.Path, v.URI = all[v.Dir].Path, all[v.Dir].URI
	v.Parameters = url.Values{"dir": {strconv.Itoa(v.Dir)}}
	if action == "prune" {
		command := []string{"yarn-submit", "ckpt", "prune", v.URI, "--keep", strconv.Itoa(v.Keep)}
		v.Parameters.Set("keep", strconv.Itoa(v.Keep))
		if v.Every > 0 {
			every := strconv.FormatInt(v.Every, 10)
			command = append(command, "--every", every)
			v.Parameters.Set("every", every)
		}
		v.Command = shellLine(command)
		return v, inspect.PlanPrune(v.Keep, v.Every), nil
	}
	dir := path.Dir(p.Get("name"))
	v.Parameters.Set("step", p.Get("step"))
	v.Parameters.Set("name", p.Get("name"))
	command := []string{"yarn-submit", "ckpt", "rollback", v.URI, p.Get("step")}
	if dir != "." {
		command = append(command, "--dir", dir)
	}
	v.Command = shellLine(command)
	return v, inspect.PlanRollback(dir, step, who, proto.WritersJob), nil
}

// rollbackAddress returns the address of the plan to go back to a checkpoint.
func rollbackAddress(dir int, c *inspect.Checkpoint) string {
	return "rollback?" + url.Values{"dir": {strconv.Itoa(dir)}, "step": {strconv.FormatInt(*c.Step, 10)}, "name": {c.Name}}.Encode()
}

// show takes a plan into the view, with its proof for those who may agree to it.
func (s *server) show(v *changeView, plan inspect.Plan, r *http.Request, status *proto.JobStatus) {
	switch p := plan.(type) {
	case *inspect.Pruning:
		v.Prune = p
	case *inspect.Rollback:
		v.Rollback = p
	}
	v.Question = plan.Question()
	who, err := "", errors.New("these pages only show")
	if s.Changes != nil {
		who, err = s.Changes.May(r)
	}
	switch {
	case err != nil:
		v.Refused = err.Error()
	case v.Rollback != nil && s.Status != nil && !status.State.Done() && slices.Contains(v.Rollback.Writers, status.Id):
		v.Refused = "this job writes to the directory, and tasks would go on from what it saves next; end it first (yarn-submit kill " + status.Id + ")"
	case v.Question != "":
		v.Proof = s.Changes.proof(who, plan.ID())
	}
}

// plan returns a view of a planned change.
func (s *server) plan(action string) view {
	return func(r *http.Request, status *proto.JobStatus) (string, any, error) {
		v, planner, err := s.parseChange(action, parametersOf(r), "")
		if err != nil {
			return "", nil, err
		}
		plan, err := s.Checkpoints.Plan(r.Context(), v.Dir, planner)
		switch {
		case inspect.IsUnplannable(err) && !asksJSON(r):
			v.Error = err.Error()
		case err != nil:
			return "", nil, err
		default:
			s.show(v, plan, r, status)
		}
		return "change", v, nil
	}
}

// changed is what has come of a change; the plan is nil if there is none.
type changed struct {
	plan inspect.Plan
	err  error
}

// change returns a handler that carries a change out whose plan was shown.
func (s *server) change(action string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		who, err := s.Changes.May(r)
		if err == nil {
			err = s.Changes.fromOwnPage(r)
		}
		log := s.Changes.Log.WithFields(logrus.Fields{"audit": action, "who": who, "allowed": err == nil})
		if err != nil {
			log.WithError(err).Warn("a change of checkpoints was refused")
			Fail(w, r, http.StatusForbidden, err.Error())
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
		if err != nil {
			Fail(w, r, http.StatusBadRequest, "read what is to be changed: "+err.Error())
			return
		}
		p := parseParameters(string(body)) // whatever its type: YARN's proxy reads a form itself
		v, planner, err := s.parseChange(action, p, who)
		if err != nil {
			failWith(w, r, err)
			return
		}
		log = log.WithFields(logrus.Fields{"directory": v.URI, "change": v.Command})
		ended := make(chan changed, 1)
		go func() {
			// The log says how it has ended, whether somebody waits for that or not.
			c := changed{}
			c.plan, c.err = s.Checkpoints.Execute(context.WithoutCancel(r.Context()), v.Dir, planner, func(id string) bool {
				agreed := s.Changes.proves(p.Get("proof"), who, id)
				if agreed {
					log.Info("checkpoints are changed")
				}
				return agreed
			})
			if c.err != nil {
				log.WithError(c.err).Warn("checkpoints were not changed, or not all")
			} else {
				log.Info("checkpoints have been changed")
			}
			ended <- c
		}()
		ctx, cancel := context.WithTimeout(r.Context(), lookTimeout)
		defer cancel()
		code := http.StatusOK
		var c changed
		select {
		case c = <-ended:
			if c.err != nil {
				v.Error, code = c.err.Error(), http.StatusConflict
			}
		case <-ctx.Done():
			v.Error, code = "The change takes long, and goes on: look at the checkpoints again in a while.", http.StatusAccepted
		}
		status, news := s.brief()
		if c.plan != nil {
			s.show(v, c.plan, r, status)
		}
		text, renderErr := s.render(begin, status, news, "change", v)
		if renderErr != nil {
			failWith(w, r, renderErr)
			return
		}
		writePage(w, code, text)
	})
}

// Done reports whether the change was made.
func (v *changeView) Done() bool {
	return v.Prune != nil && v.Prune.Done || v.Rollback != nil && v.Rollback.Done
}

func (v *changeView) frame(f *frame) {
	f.JSON = v.Action + ".json?" + v.Parameters.Encode()
	f.Updates = "" // a plan stays as it was shown
}

// json answers with what the command prints that does the same.
func (v *changeView) json() (int, any) {
	if v.Prune != nil {
		return http.StatusOK, v.Prune
	}
	return http.StatusOK, v.Rollback
}
