"""One page and one API over models: requests of many clients in shared batches, the network in a supervised child.

    client ──HTTP──► gate ──► routes ──► dispatcher ──frames of JSON──► child: Translator
                     host, key, limits   queue, rounds, deadlines       restarted when it dies

The serving process itself never loads torch. It counts tokens, decides who is served next and answers; the child
computes. What passes between them is JSON with its length before it, never pickle.
"""
