package app_test

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// follow opens a stream of events, and gives what tells when it has ended.
func (s *service) follow(path string, who option) <-chan error {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	who(req)
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req) //nolint:bodyclose // the goroutine below closes it
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatal(err, res)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		ended <- err
	}()
	return ended
}

// over waits for the end of a stream that follow opened.
func over(t *testing.T, name string, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	case <-time.After(patience):
		t.Errorf("%s: the stream goes on", name)
	}
}

// Streams of runs end when their reader may not read them any more, whichever way: the user is deactivated, a token is
// revoked, a right has ended, the project is unregistered.
func TestStreamsEndWithTheRight(t *testing.T) {
	t.Parallel()
	s := runPlant(t, nil)
	path := s.do("POST", plantJobs+"/slow/run", admin).header.Get("Location") + "/events"
	scopes := map[string]any{"scopes": []string{"project.read"}}
	gone, goneToken := s.user("gone", scopes)
	demoted, demotedToken := s.user("demoted", scopes)
	_, owner := s.user("owner", scopes)
	pat := s.do("POST", "/api/v1/token", session(owner), json1(map[string]any{"name": "p", "scopes": []string{"project.read"}, "expiresAt": time.Now().Add(time.Hour)}))
	pat.want(t, http.StatusCreated)
	streams := map[string]<-chan error{
		"a deactivated user": s.follow(path, session(goneToken)), "a right that ended": s.follow(path, session(demotedToken)),
		"a revoked token": s.follow(path, session(pat.field("token"))),
	}
	rest := s.follow(path, admin)
	s.do("PUT", "/api/v1/user/"+gone, admin, text(`{"active": false}`)).want(t, http.StatusOK)
	s.do("PUT", "/api/v1/user/"+demoted, admin, text(`{"scopes": []}`)).want(t, http.StatusOK)
	s.do("DELETE", "/api/v1/token/"+pat.field("id"), session(owner)).want(t, http.StatusOK)
	for name, ended := range streams {
		over(t, name, ended)
	}
	select {
	case <-rest:
		t.Error("the stream of somebody else ended, too")
	default:
	}
	s.do("DELETE", path[:len(path)-len("/events")], admin).want(t, http.StatusAccepted)
	over(t, "the run", rest)

	path = s.do("POST", plantJobs+"/slow/run", admin).header.Get("Location") + "/events"
	rest = s.follow(path, admin)
	s.do("DELETE", "/api/v1/project/"+s.projectID(), admin).want(t, http.StatusOK)
	over(t, "an unregistered project", rest)
}
