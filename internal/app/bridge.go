package app

import (
	"io"
	"log"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Bridge sends what libraries log through loggers of the whole process to logger, or nowhere: Helm's prints values through
// the standard one. It is called once, before anything else runs.
func Bridge(logger *slog.Logger) {
	klog.SetLogger(logr.FromSlogHandler(logger.With("component", "client-go").Handler()))
	log.SetOutput(io.Discard)
}
