package httpapi

import (
	"net/http"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
)

// right says what a caller needs for a route. Every route names one; the zero value lets nobody in.
type right struct {
	kind rightKind
	name string // of kind system and project: the right, such as "project.reload"
}

type rightKind uint8

const (
	rightNobody  rightKind = iota
	rightPublic            // anyone, with no credential or a valid one
	rightLogin             // a logged-in user
	rightSystem            // the named right, for a user, or the server admin token
	rightProject           // the named right on the project of the path; a project admin token may have it too
	rightRecords           // the collection's permission sets decide (pkg/records)
)

// handler answers a request or gives the error to answer with.
type handler func(s *Server, w http.ResponseWriter, r *request) error

type route struct {
	method  string
	pattern string // below api.Prefix
	right   right
	handle  handler
}

// routes is every route of the API with the right that it needs.
func routes() []route {
	anyone, user, record := right{kind: rightPublic}, right{kind: rightLogin}, right{kind: rightRecords}
	sys := func(name string) right { return right{kind: rightSystem, name: name} }
	prj := func(name string) right { return right{kind: rightProject, name: name} }
	return []route{
		{"GET", api.RouteVersion, anyone, (*Server).version},
		{"POST", api.RouteLogin, anyone, (*Server).login},
		{"POST", api.RouteLogout, user, (*Server).logout},
		{"GET", api.RouteMe, anyone, (*Server).me},
		{"PUT", api.RouteMePassword, user, (*Server).changePassword},

		{"GET", api.RouteUsers, sys(access.UserRead), (*Server).listUsers},
		{"POST", api.RouteUsers, sys(access.UserCreate), (*Server).createUser},
		{"GET", api.RouteUser, sys(access.UserRead), (*Server).getUser},
		{"PUT", api.RouteUser, sys(access.UserUpdate), (*Server).updateUser},
		{"DELETE", api.RouteUser, sys(access.UserDelete), (*Server).deleteUser},

		{"GET", api.RouteProjects, sys(access.ProjectRead), (*Server).listProjects},
		{"POST", api.RouteProjects, sys(access.ProjectCreate), (*Server).registerProject},
		{"GET", api.RouteProject, sys(access.ProjectRead), (*Server).getProject},
		{"PUT", api.RouteProject, sys(access.ProjectUpdate), (*Server).updateProject},
		{"DELETE", api.RouteProject, sys(access.ProjectDelete), (*Server).unregisterProject},
		{"GET", api.RouteProjectStatus, sys(access.ProjectRead), (*Server).projectStatus},
		{"POST", api.RouteReload, prj(access.ProjectReload), (*Server).reload},

		{"GET", api.RouteCollections, prj(access.ProjectRead), (*Server).listCollections},
		{"GET", api.RouteCollection, record, (*Server).describeCollection},

		{"GET", api.RouteRecordCount, record, (*Server).countRecords},
		{"GET", api.RouteRecords, record, (*Server).listRecords},
		{"POST", api.RouteRecords, record, (*Server).createRecords},
		{"PUT", api.RouteRecords, record, (*Server).bulkUpdate},
		{"DELETE", api.RouteRecords, record, (*Server).bulkDelete},
		{"GET", api.RouteRecord, record, (*Server).getRecord},
		{"PUT", api.RouteRecord, record, (*Server).updateRecord},
		{"PATCH", api.RouteRecord, record, (*Server).patchRecord},
		{"DELETE", api.RouteRecord, record, (*Server).deleteRecord},
	}
}
