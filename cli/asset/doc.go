// Package asset holds svcctl asset: the folders of a project whose files are public.
package asset
