"""The translation server: one web page and two HTTP APIs over one or more models.

    client ──HTTP──► gate ──────────────────► routes ──► dispatcher ──────────────────► child process
                     host name, key, limits              queue, batches, time limits    Translator, torch

The server process never loads torch: it checks requests, counts tokens, queues and answers. The child process computes
and is restarted when it dies. The two exchange JSON over pipes, never pickle.
"""
