"""Solves of many users on workers of their own, through Celery and Redis: an optional extra.

``broker`` has what lies in Redis and for how long, ``sent`` the solve as the server sees it and
``working`` the same as the worker does; ``tasks`` is the one task of Celery, by which a solve finds
a worker. Nothing here is loaded unless a queue is asked for.
"""
