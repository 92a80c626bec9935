package web

import (
	"context"
	"errors"
	"net/http"
	"path"

	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

// errNotFound is returned by views for what the job does not have.
var errNotFound = errors.New("the job has no such thing")

// asksJSON reports whether a request is for an address of JSON.
func asksJSON(r *http.Request) bool { return path.Ext(r.URL.Path) == ".json" }

// Fail answers with an error: as text, or at addresses of JSON as the object that
// docs/json.md describes.
func Fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	if !asksJSON(r) {
		http.Error(w, message, status)
		return
	}
	f := proto.Failure{Code: 1, Kind: "failed", Message: message} // as commands fail: package client
	switch status {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed:
		f.Code, f.Kind = 2, "usage"
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		f.Code, f.Kind = 3, "unreachable"
	case http.StatusForbidden:
		f.Code, f.Kind = 4, "denied"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(f.JSON(), '\n')) // the reader went away
}

// failWith answers with what a view returned.
func failWith(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, new(badParameter)):
		status = http.StatusBadRequest
	case errors.Is(err, errNotFound), inspect.IsMissing(err), inspect.IsUnplannable(err):
		status = http.StatusNotFound
	case errors.Is(err, errTooMany):
		status = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	}
	Fail(w, r, status, err.Error())
}

// answerJSON answers with a value that is a JSON object.
func answerJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	text, err := proto.VersionedJSON(v)
	if err != nil {
		Fail(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, status, text)
}

func writeJSON(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the reader went away
}

// unknown answers requests that no pattern matches: as the mux does, but with JSON where that
// was asked for. Nor does a path match that is not clean: the mux would lead to a clean one on its
// host, and does not know below which prefix its pages are.
func unknown(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := r.URL.Path; at != path.Clean(at) {
			Fail(w, r, http.StatusNotFound, "there is nothing at "+at)
			return
		}
		if _, pattern := mux.Handler(r); pattern != "" || !asksJSON(r) {
			mux.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			Fail(w, r, http.StatusMethodNotAllowed, r.Method+" is not allowed there")
			return
		}
		Fail(w, r, http.StatusNotFound, "there is nothing at "+r.URL.Path)
	})
}
