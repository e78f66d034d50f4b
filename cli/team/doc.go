// Package team holds svcctl team: groups of users who share rights.
package team
